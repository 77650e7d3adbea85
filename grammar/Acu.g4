// The grammar of the `.acu` language (docs/language.md). The token stream is filtered before it gets here (frontend/tokens.cpp): line ends inside
// brackets and after operators are dropped, `REDUCE` and `TOPK` are names that open a reduction, and `OPEN`/`CLOSE` are the angle brackets of compile-time
// arguments.  So one token of look-ahead decides nearly everywhere.
grammar Acu;

tokens { REDUCE, TOPK, OPEN, CLOSE }

file: NL* (declaration NL*)* EOF;

declaration: importDecl | fnDecl | opDecl | caseDecl | scheduleDecl;

importDecl: 'import' NAME ('.' NAME)* '{' NAME (',' NAME)* ','? '}';

fnDecl: 'fn' NAME '(' (NAME (',' NAME)*)? ')' '=' expr;

opDecl: 'op' NAME generics? '(' (param (',' param)* ','?)? ')' '->' outputs whereClause? '{' statements '}';
generics: OPEN generic (',' generic)* CLOSE;
generic: NAME ':' NAME ('|' NAME)* ('=' expr)?;
param: NAME ':' 'strided'? NAME shape? ('=' expr)?;
outputs: output | '(' output (',' output)* ','? ')';
output: NAME ':' NAME shape;
shape: '[' (dimension (',' dimension)*)? ']';
dimension: '..' NAME | expr;
whereClause: 'where' expr (',' expr)*;

statements: NL* (statement (NL+ statement)*)? NL*;
statement: target (',' target)* ('=' | '+=') right;
target: NAME ('[' (subscript (',' subscript)*)? ']')?;
subscript: '..' NAME | expr;
right: scan | topk | expr;
scan: 'scan' 'exclusive'? REDUCE '(' NAME ')' expr;
topk: TOPK '(' axis ',' expr ')' expr;
axis: NAME ('in' expr)?;

expr
    : NAME suffix?                                                           # name
    | (INT | FLOAT | 'true' | 'false')                                       # literal
    | '(' expr ')'                                                           # group
    | ('-' | '!' | '~') expr                                                 # unary
    | expr ('*' | '/' | '%') expr                                            # infix
    | expr ('+' | '-') expr                                                  # infix
    | expr ('<<' | '>>') expr                                                # infix
    | expr '&' expr                                                          # infix
    | expr '^' expr                                                          # infix
    | expr '|' expr                                                          # infix
    | expr ('==' | '!=' | '<' | '<=' | '>' | '>=') expr                      # infix
    | expr '&&' expr                                                         # infix
    | expr '||' expr                                                         # infix
    | 'if' expr 'then' expr 'else' expr                                      # conditional
    | expr 'or' expr                                                         # otherwise
    | REDUCE '(' axis (',' axis)* ('where' expr)? ')' expr                   # reduction
    ;
suffix
    : (OPEN argument (',' argument)* CLOSE)? '(' (expr (',' expr)* ','?)? ')'
    | '[' (subscript (',' subscript)*)? ']'
    ;
argument: NAME '=' expr;

caseDecl: 'case' NAME 'for' NAME '{' separators (setting (separator setting)* separators)? '}';
separator: ',' separators | NL separators;
separators: (',' | NL)*;
setting: NAME '=' settingValue;
settingValue: expr | '[' (expr (',' expr)* ','?)? ']';

scheduleDecl: 'schedule' NAME 'for' NAME ('when' expr)? '{' NL* (step (NL+ step)*)? NL* '}';
step: NAME '(' (stepArgument (',' stepArgument)* ','?)? ')';
stepArgument: ((NAME | 'in' | 'when') '=')? stepValue;
stepValue: path | '-'? INT | 'true' | 'false' | '(' expr ')' | '[' (stepItem (',' stepItem)* ','?)? ']';
stepItem: (path ':')? stepValue;
path: NAME (('.' | '/') (NAME | INT | FLOAT))*;

INT: [0-9] [0-9_]* | '0x' [0-9a-fA-F]+;
FLOAT: [0-9]+ '.' [0-9]+ EXPONENT? | [0-9]+ EXPONENT;
fragment EXPONENT: [eE] [+-]? [0-9]+;
NAME: [a-zA-Z_] [a-zA-Z_0-9]*;
NL: '\r'? '\n';
SPACE: [ \t]+ -> channel(HIDDEN);
LINE_COMMENT: '//' ~[\r\n]* -> channel(HIDDEN);
BLOCK_COMMENT: '/*' .*? '*/' -> channel(HIDDEN);
UNKNOWN: . ;
