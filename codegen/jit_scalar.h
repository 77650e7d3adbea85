#pragma once
// Private to codegen/jit*.cpp: LLVM is visible here.
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>

#include "ir/value.h"

namespace acu::codegen::jit {

using Val = llvm::Value*;

/// What the host has in hardware.
struct Host {
    bool f16c = false;
    bool fma = false;
};

/// Builds scalar code. A number of the interpreter is an LLVM value whose type says what it is: `float` or `double` for a float type, `i64` for an
/// integer or a boolean (any i64 but 0 is true), held as the interpreter holds it, so that each wraps where the interpreter wraps.
class ScalarBuilder {
  public:
    ScalarBuilder(llvm::Module& module, Host host);

    static bool real(Val x) { return x->getType()->isFloatingPointTy(); }
    Val i64(int64_t x) { return b.getInt64(static_cast<uint64_t>(x)); }
    Val truth(Val x);           ///< as i1; the interpreter sees a float as false
    Val whole(Val condition);   ///< an i1 as a number
    Val to_float(Val x);
    Val to_double(Val x);
    Val zero(ir::DType type);
    Val constant(const ir::ValueNode& v);

    Val floor_div(Val a, Val y);
    Val floor_mod(Val a, Val y);
    Val index_op(ir::IndexOp op, Val a, Val y);

    Val arithmetic(ir::Op op, ir::DType type, Val a, Val y);
    Val negate(ir::DType type, Val a);
    Val function(const std::string& name, ir::DType type, const std::vector<Val>& args);
    Val maximum(Val a, Val y, bool greater);
    Val better(ir::Monoid m, Val a, Val ia, Val y, Val iy);    ///< `ir::better` as i1

    Val wrap(Val x, ir::DType type);
    Val saturate(Val x, ir::DType type);
    Val convert(Val x, ir::DType to);

    Val load(ir::DType type, Val base, Val index);
    void store(ir::DType type, Val base, Val index, Val x);
    Val element(ir::DType type, Val base, Val index);    ///< its address

    /// A call of a function of jit_helpers.h. `pure`: it touches no memory.
    llvm::CallInst* helper(const std::string& name, llvm::Type* result, const std::vector<Val>& args, bool pure);

    /// `then` and `otherwise` build their side and answer a number of the same kind.
    template <class Then, class Otherwise>
    Val either(Val condition, Then then, Otherwise otherwise);
    template <class Then>
    void when(Val condition, Then then);
    /// `body(i)` for i in 0 .. count - 1.
    template <class F>
    void loop(Val count, F body);

  protected:
    llvm::BasicBlock* block(const char* name) { return llvm::BasicBlock::Create(context_, name, b.GetInsertBlock()->getParent()); }

    llvm::Module& module_;
    llvm::LLVMContext& context_;
    llvm::IRBuilder<> b;

  private:
    llvm::Type* storage(ir::DType type);
    Val encode(ir::DType type, Val x);
    Val encode_float(ir::DType type, Val x);
    Val encode_bf16(Val x);
    Val decode(ir::DType type, Val bits);
    Val decode_f8(ir::DType type, Val bits);
    Val round_tf32(Val x);
    Val real_arithmetic(ir::Op op, ir::DType type, Val a, Val y);
    Val whole_arithmetic(ir::Op op, ir::DType type, Val a, Val y);
    Val compare(ir::Op op, Val a, Val y);
    Val whole_function(const std::string& name, ir::DType type, const std::vector<Val>& args);
    Val inlined(const std::string& name, const std::vector<Val>& args);
    Val rounding(const std::string& name, Val a);
    Val merge(Val x, llvm::BasicBlock* from, Val y, llvm::BasicBlock* other);

    Host host_;
};

template <class Then, class Otherwise>
Val ScalarBuilder::either(Val condition, Then then, Otherwise otherwise) {
    llvm::BasicBlock *yes = block("then"), *no = block("else"), *join = block("join");
    b.CreateCondBr(condition, yes, no);
    b.SetInsertPoint(yes);
    const Val x = then();
    yes = b.GetInsertBlock();
    b.CreateBr(join);
    b.SetInsertPoint(no);
    const Val y = otherwise();
    no = b.GetInsertBlock();
    b.CreateBr(join);
    b.SetInsertPoint(join);
    return merge(x, yes, y, no);
}

template <class Then>
void ScalarBuilder::when(Val condition, Then then) {
    llvm::BasicBlock *yes = block("when"), *join = block("end");
    b.CreateCondBr(condition, yes, join);
    b.SetInsertPoint(yes);
    then();
    b.CreateBr(join);
    b.SetInsertPoint(join);
}

template <class F>
void ScalarBuilder::loop(Val count, F body) {
    llvm::BasicBlock *before = b.GetInsertBlock(), *top = block("loop"), *exit = block("done");
    b.CreateCondBr(b.CreateICmpSGT(count, i64(0)), top, exit);
    b.SetInsertPoint(top);
    llvm::PHINode* i = b.CreatePHI(b.getInt64Ty(), 2);
    i->addIncoming(i64(0), before);
    body(i);
    const Val next = b.CreateNUWAdd(i, i64(1));
    llvm::cast<llvm::Instruction>(next)->setHasNoSignedWrap();
    i->addIncoming(next, b.GetInsertBlock());
    b.CreateCondBr(b.CreateICmpSLT(next, count), top, exit);
    b.SetInsertPoint(exit);
}

}  // namespace acu::codegen::jit
