#pragma once
// Private to codegen/jit*.cpp: LLVM is visible here.
#include <map>
#include <set>

#include "codegen/jit_scalar.h"
#include "ir/program.h"
#include "support/result.h"

namespace acu::codegen::jit {

/// Thrown inside codegen/jit*.cpp only.
struct Unsupported {
    Diagnostic why;
};

/// A buffer while code that may use it is built.
struct Buffer {
    const ir::Decl* decl = nullptr;
    Val data = nullptr;
    std::vector<Val> origin, sizes;
};

/// Builds `void entry(void** buffers, const int64_t* dims)`: `buffers` in the order of the declarations, `dims` in that of the dimensions.
class Emitter : ScalarBuilder {
  public:
    Emitter(const ir::Program& p, llvm::Module& module, Host host) : ScalarBuilder(module, host), p_(p) {}
    void emit(const std::string& entry);

  private:
    template <class T>
    using Named = std::map<std::string, T, std::less<>>;

    // jit_emit.cpp
    llvm::Function* kernel(const std::string& name);
    void wrapper(const std::string& name, llvm::Function* kernel);
    void open_arguments(llvm::Function* f);
    void body(const ir::Body& stmts);
    void statement(const ir::Stmt& s);
    void loop_statement(const ir::Loop& l);
    void condition(const ir::If& i);
    std::vector<Val> open_local(const ir::Decl& d);
    Val bytes_of(const Buffer& buffer);
    Val local_memory(Val bytes);
    void points(const ir::Block& b, size_t axis);
    void guarded(const ir::Block& b, size_t guard);
    void point(const ir::Block& b);
    void combine(const ir::Block& b, Val x);
    Val combined(const ir::Block& b, ir::DType t, Val a, Val x);
    void keep_best(const ir::Block& b, Val x, Val position);
    void place_best(const ir::Block& b, const Buffer& values, const Buffer& positions, Val base, Val x, Val position);
    void bind(const std::string& name, Val value, bool from_data);

    // jit_values.cpp
    Val index(const ir::Index& e);
    Val segment(const ir::IndexNode& e);
    Val value(const ir::Value& v);
    Val lazily(const ir::ValueNode& v);
    Val selected(const ir::ValueNode& v);
    Val read(const ir::ValueNode& v);
    Val call(const ir::ValueNode& v);
    const Buffer& buffer(const std::string& name);
    /// The element at `subscripts`; where `inside` is asked for it receives whether all lie inside.
    Val locate(const Buffer& buffer, const std::vector<ir::Index>& subscripts, Val* inside);
    bool from_data(const ir::Index& e) const;    ///< its value depends on the elements of a tensor, so no bound was proven
    bool from_data(const std::vector<ir::Index>& subscripts) const;
    /// Builds `use(at)` for the element of `buffer` that is written; code that skips it outside where no bound was proven.
    template <class F>
    void written(const Buffer& target, const std::vector<ir::Index>& subscripts, F use) {
        if (!from_data(subscripts)) return use(locate(target, subscripts, nullptr));
        Val inside = nullptr;
        const Val at = locate(target, subscripts, &inside);
        when(inside, [&] { use(at); });
    }

    const ir::Program& p_;
    llvm::BasicBlock* entry_ = nullptr;
    int64_t stack_ = 0;    ///< bytes in allocas
    int checked_ = 0;      ///< inside the subscripts of a checked access, where index loads are checked too
    Named<Val> names_;
    Named<Buffer> buffers_;
    std::set<std::string, std::less<>> data_names_;
};

}  // namespace acu::codegen::jit
