#pragma once
#include "ir/analysis/facts.h"
#include "ir/program.h"

namespace acu::codegen {

/// C identifiers for IR names: dots become underscores, clashes and keywords get a suffix. The same name always gives the same identifier; index
/// names and buffers are different name spaces.
class Identifiers {
  public:
    std::string of(const std::string& index_name) { return given(index_name, index_name); }
    std::string buffer(const std::string& name) { return given("buffer " + name, name); }
    std::string fresh(const std::string& stem);
    /// Writes an index name as this identifier from now on.
    void alias(const std::string& index_name, const std::string& identifier) { given_[index_name] = identifier, taken_.insert(identifier); }

  private:
    std::string given(const std::string& key, const std::string& stem);
    std::map<std::string, std::string> given_;
    std::set<std::string> taken_;
};

/// "float", "i64", "f16", …: of an element, and of a value in an expression.
std::string_view element_type(ir::DType t);
/// A word of C, of its library, or of emitted code.
bool is_reserved(const std::string& word);
std::string_view value_type(ir::DType t);

/// Writes expressions of one kernel.
class ExpressionWriter {
  public:
    ExpressionWriter(const std::map<std::string, const ir::Decl*>& buffers, Identifiers& names, ir::analysis::Facts& facts) : buffers_(buffers), names_(names), facts_(facts) {}

    std::string index(const ir::Index& e) { return index(e, 0, false); }
    /// As an operand: `outer` is the precedence around it (1: sum, 2: product).
    std::string index(const ir::Index& e, int outer, bool right);
    /// The coordinate of a cell, from its number: every size is at least 1 where there is a cell, so C's division is right.
    std::string coordinate(const ir::Index& e) {
        plain_division_ = true;
        const std::string s = index(e);
        plain_division_ = false;
        return s;
    }
    std::string value(const ir::Value& v);
    /// The element of a buffer, as an lvalue.
    std::string element(const std::string& tensor, const std::vector<ir::Index>& subscripts);
    /// Where an element stands if nothing is swizzled: the start of a tile.
    std::string address(const std::string& tensor, const std::vector<ir::Index>& subscripts);
    /// `v`, of type `from`, as it is stored in an element of `type`.
    std::string stored(const std::string& v, ir::DType from, ir::DType type) const;
    /// The condition that the subscripts lie inside, without what is obvious; empty: they do.
    std::string inside(const std::string& tensor, const std::vector<ir::Index>& subscripts);
    /// `const T t = …;` for each value that is used more than once outside of conditions; later calls of `value` use the names.
    std::vector<std::string> shared(const std::vector<ir::Value>& values);
    void forget_shared() { shared_.clear(), named_.clear(); }
    /// Writes this value as `text` until `forget_shared`.
    void name_value(const ir::ValueNode* v, const std::string& text) { named_[v] = text; }
    /// Writes the elements on the left as those on the right.
    void redirect(std::map<std::string, std::string> elements) { redirected_ = std::move(elements); }
    const ir::Decl& decl(const std::string& tensor) const { return *buffers_.at(tensor); }

  private:
    std::string index_division(const ir::Index& e, int outer, bool right);
    std::string cell_of(const ir::Decl& d, const std::string& name, const std::vector<ir::Index>& subscripts);
    std::string own_register(const ir::Decl& d, const std::vector<ir::Index>& subscripts);
    std::string offset(const ir::Decl& d, const std::vector<ir::Index>& subscripts);
    std::string panelled(const ir::Decl& d, const std::string& outer, const ir::Index& line, const ir::Index& at);
    std::string text_of(const ir::Value& v);
    std::string operand(const ir::Value& v);
    std::string literal(const ir::ValueNode& v) const;
    std::string load(const ir::ValueNode& v);
    std::string call(const ir::ValueNode& v);
    std::string cast(const ir::ValueNode& v);
    std::string comparison(const ir::ValueNode& v);
    std::string float_infix(const ir::ValueNode& v);
    std::string int_infix(const ir::ValueNode& v);
    std::string summand(const ir::Value& v);
    void count_uses(const ir::Value& v, bool conditional, std::map<const ir::ValueNode*, int>& uses, std::vector<ir::Value>& order) const;

    const std::map<std::string, const ir::Decl*>& buffers_;
    Identifiers& names_;
    ir::analysis::Facts& facts_;
    std::map<const ir::ValueNode*, std::string> shared_, named_;
    std::map<std::string, std::string> redirected_;
    bool plain_division_ = false;
};

}  // namespace acu::codegen
