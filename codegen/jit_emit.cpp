#include "codegen/jit_emit.h"

#include <fmt/format.h>

#include "codegen/jit_helpers.h"
#include "codegen/jit_order.h"

namespace acu::codegen::jit {

using ir::DType;
using ir::Monoid;
using ir::Op;
using ir::Scope;

static constexpr int64_t largest_alloca = 64 << 10, largest_frame = 256 << 10;

void Emitter::emit(const std::string& entry) { wrapper(entry, kernel(entry + ".body")); }

/// The buffers are arguments of their own, because that is where LLVM believes that they do not overlap.
llvm::Function* Emitter::kernel(const std::string& name) {
    std::vector<llvm::Type*> types(p_.decls.size(), b.getPtrTy());
    types.insert(types.end(), p_.dims.size(), b.getInt64Ty());
    auto* f = llvm::Function::Create(llvm::FunctionType::get(b.getVoidTy(), types, false), llvm::Function::InternalLinkage, name, module_);
    f->setDoesNotThrow();
    f->addFnAttr(llvm::Attribute::NoInline);
    entry_ = llvm::BasicBlock::Create(context_, "entry", f);
    b.SetInsertPoint(llvm::BasicBlock::Create(context_, "start", f));
    open_arguments(f);
    body(p_.body);
    b.CreateRetVoid();
    llvm::BasicBlock* start = entry_->getNextNode();
    b.SetInsertPoint(entry_);
    b.CreateBr(start);
    return f;
}

void Emitter::wrapper(const std::string& name, llvm::Function* kernel) {
    auto* f = llvm::Function::Create(llvm::FunctionType::get(b.getVoidTy(), {b.getPtrTy(), b.getPtrTy()}, false), llvm::Function::ExternalLinkage, name, module_);
    f->setDoesNotThrow();
    b.SetInsertPoint(llvm::BasicBlock::Create(context_, "entry", f));
    std::vector<Val> args;
    for (size_t i = 0; i < p_.decls.size() + p_.dims.size(); ++i) {
        const bool is_buffer = i < p_.decls.size();
        llvm::Type* type = is_buffer ? static_cast<llvm::Type*>(b.getPtrTy()) : b.getInt64Ty();
        const Val at = i64(static_cast<int64_t>(is_buffer ? i : i - p_.decls.size()));
        args.push_back(b.CreateLoad(type, b.CreateGEP(type, f->getArg(is_buffer ? 0 : 1), at)));
    }
    b.CreateCall(kernel, args);
    b.CreateRetVoid();
}

static bool is_read_only(const ir::Decl& d) { return d.scope == Scope::In || d.scope == Scope::Param; }

void Emitter::open_arguments(llvm::Function* f) {
    const auto buffers = static_cast<unsigned>(p_.decls.size());
    for (unsigned i = 0; i < p_.dims.size(); ++i) {
        const ir::Dim& d = p_.dims[i];
        names_[d.name] = d.value ? i64(*d.value) : f->getArg(buffers + i);
        f->getArg(buffers + i)->setName(d.name);
    }
    for (unsigned i = 0; i < buffers; ++i) {
        const ir::Decl& d = p_.decls[i];
        f->getArg(i)->setName(d.name);
        f->addParamAttr(i, llvm::Attribute::NoAlias);
        f->addParamAttr(i, llvm::Attribute::NoCapture);
        if (is_read_only(d)) f->addParamAttr(i, llvm::Attribute::ReadOnly);
        if (d.dims.empty()) f->addDereferenceableParamAttr(i, ir::info(d.type).bytes);
        Buffer& buffer = buffers_[d.name] = {&d, f->getArg(i), {}, {}};
        for (const ir::Window& w : d.dims) {
            if (ir::mentions_load(w.size)) throw Unsupported{{"codegen.unsupported", d.loc, fmt::format("the size of `{}` depends on data", d.name)}};
            buffer.origin.push_back(index(w.origin));
            buffer.sizes.push_back(index_op(ir::IndexOp::Max, index(w.size), i64(0)));
        }
    }
}

// ---- statements

void Emitter::body(const ir::Body& stmts) {
    for (const ir::Stmt& s : stmts) {
        try {
            statement(s);
        } catch (Unsupported& u) {
            if (!u.why.loc) u.why.loc = s->loc;
            throw;
        }
    }
}

void Emitter::statement(const ir::Stmt& s) {
    ir::match(
        s, [&](const ir::Block& block) { points(ordered(block), 0); }, [&](const ir::Loop& l) { loop_statement(l); }, [&](const ir::If& i) { condition(i); },
        [&](const ir::Roles&) { throw Unsupported{{"codegen.unsupported", s->loc, "roles run in the interpreter only"}}; },
        [&](const ir::Sync& y) {
            if (y.op < ir::SyncOp::Barrier) throw Unsupported{{"codegen.unsupported", s->loc, "rings run in the interpreter only"}};
        });
}

void Emitter::condition(const ir::If& i) {
    either(
        truth(value(i.condition)), [&] { return body(i.body), i64(0); }, [&] { return body(i.otherwise), i64(0); });
}

void Emitter::bind(const std::string& name, Val value, bool from_data) {
    names_[name] = value;
    if (from_data) data_names_.insert(name);
    else data_names_.erase(name);
}

void Emitter::loop_statement(const ir::Loop& l) {
    loop(index(l.extent), [&](Val i) {
        bind(l.var, i, from_data(l.extent));
        for (const ir::Let& x : l.lets) bind(x.name, index(x.value), from_data(x.value));
        std::vector<Val> heap;
        for (const ir::Decl& d : l.allocs)
            for (const Val memory : open_local(d)) heap.push_back(memory);
        body(l.body);
        for (const Val memory : heap) helper("acu.release", b.getVoidTy(), {memory}, false);
    });
}

/// A fresh buffer of zeros; answers what must be released at the end of the iteration.
std::vector<Val> Emitter::open_local(const ir::Decl& d) {
    if (d.ring.versions) throw Unsupported{{"codegen.unsupported", d.loc, "rings run in the interpreter only"}};
    Buffer buffer{&d, nullptr, {}, {}};
    for (const ir::Window& w : d.dims) {
        buffer.origin.push_back(index(w.origin));
        buffer.sizes.push_back(index_op(ir::IndexOp::Max, index(w.size), i64(0)));
    }
    const Val bytes = bytes_of(buffer);
    buffer.data = local_memory(bytes);
    std::vector<Val> heap;
    if (!buffer.data) {
        llvm::CallInst* memory = helper("acu.allocate", b.getPtrTy(), {bytes}, false);
        memory->addRetAttr(llvm::Attribute::NoAlias);
        heap.push_back(buffer.data = memory);
    }
    buffers_[d.name] = buffer;
    return heap;
}

Val Emitter::bytes_of(const Buffer& buffer) {
    Val bytes = i64(static_cast<int64_t>(ir::info(buffer.decl->type).bytes));
    for (const Val s : buffer.sizes) bytes = b.CreateMul(bytes, s);
    return bytes;
}

/// Stack memory, zeroed, if the size is a constant that fits; null otherwise.
Val Emitter::local_memory(Val bytes) {
    const auto* n = llvm::dyn_cast<llvm::ConstantInt>(bytes);
    if (!n || n->getSExtValue() > largest_alloca || stack_ + n->getSExtValue() > largest_frame) return nullptr;
    stack_ += n->getSExtValue();
    llvm::IRBuilder<> at(entry_);
    llvm::AllocaInst* memory = at.CreateAlloca(llvm::ArrayType::get(b.getInt8Ty(), n->getZExtValue()));
    memory->setAlignment(llvm::Align(16));
    b.CreateMemSet(memory, b.getInt8(0), bytes, llvm::Align(16));
    return memory;
}

// ---- blocks

void Emitter::points(const ir::Block& block, size_t axis) {
    if (axis == block.axes.size()) return guarded(block, 0);
    const ir::Axis& a = block.axes[axis];
    const Val base = index(a.base), size = index(a.size);
    const bool data = from_data(a.base) || from_data(a.size);
    loop(size, [&](Val i) {
        bind(a.name, b.CreateAdd(base, i), data);
        points(block, axis + 1);
    });
}

void Emitter::guarded(const ir::Block& block, size_t guard) {
    if (guard == block.guards.size()) return point(block);
    when(truth(value(block.guards[guard])), [&] { guarded(block, guard + 1); });
}

void Emitter::point(const ir::Block& block) {
    std::vector<Val> vals;
    vals.reserve(block.vals.size());
    for (const ir::Value& v : block.vals) vals.push_back(value(v));
    if (is_pair(block.monoid)) return keep_best(block, vals[0], vals[1]);
    if (block.monoid != Monoid::None) return combine(block, vals[0]);
    for (size_t i = 0; i < block.outs.size(); ++i) {
        const Buffer& out = buffer(block.outs[i].tensor);
        written(out, block.outs[i].subscripts, [&](Val at) { store(out.decl->type, out.data, at, vals[i]); });
    }
}

void Emitter::combine(const ir::Block& block, Val x) {
    const Buffer& state = buffer(block.outs[0].tensor);
    const DType type = state.decl->type, t = widened(type);
    written(state, block.outs[0].subscripts, [&](Val at) {
        const Val before = load(type, state.data, at);
        store(type, state.data, at, combined(block, t, before, convert(x, t)));
        if (block.outs.size() < 2) return;
        const Buffer& out = buffer(block.outs[1].tensor);
        written(out, block.outs[1].subscripts,
                [&](Val to) { store(out.decl->type, out.data, to, block.exclusive ? before : load(type, state.data, at)); });
    });
}

Val Emitter::combined(const ir::Block& block, DType t, Val a, Val x) {
    const ir::MonoidInfo& m = ir::info(block.monoid);
    if (m.op == Op::And) return whole(b.CreateAnd(truth(a), truth(x)));
    if (m.op == Op::Or) return whole(b.CreateOr(truth(a), truth(x)));
    if (m.op == Op::Call) return maximum(a, x, block.monoid == Monoid::Max);
    return arithmetic(m.op, t, a, x);
}

/// The last of the k places decides whether the pair gets in at all.
void Emitter::keep_best(const ir::Block& block, Val x, Val position) {
    const Buffer &values = buffer(block.outs[0].tensor), &positions = buffer(block.outs[1].tensor);
    std::vector<ir::Index> subscripts = block.outs[0].subscripts;
    if (block.monoid == Monoid::TopK) subscripts.push_back(ir::constant(0));
    if (real(x)) x = convert(x, values.decl->type);
    written(values, subscripts, [&](Val base) {
        const Val last = b.CreateAdd(base, i64(block.monoid == Monoid::TopK ? block.k - 1 : 0));
        const Val held = to_double(load(values.decl->type, values.data, last)), place = load(positions.decl->type, positions.data, last);
        when(better(block.monoid, to_double(x), position, held, place), [&] { place_best(block, values, positions, base, x, position); });
    });
}

void Emitter::place_best(const ir::Block& block, const Buffer& values, const Buffer& positions, Val base, Val x, Val position) {
    const DType vt = values.decl->type, pt = positions.decl->type;
    if (block.monoid != Monoid::TopK) {
        store(vt, values.data, base, x);
        store(pt, positions.data, base, position);
        return;
    }
    const bool floats = real(x);
    const int64_t packed = ranking(block.monoid, vt, pt, block.vals[0]->type);
    helper("acu.keep_best", b.getVoidTy(),
           {element(vt, values.data, base), element(pt, positions.data, base), i64(block.k), i64(packed), floats ? to_double(x) : zero(DType::F64),
            floats ? i64(0) : x, position},
           false);
}

}  // namespace acu::codegen::jit
