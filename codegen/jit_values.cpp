#include <fmt/format.h>

#include <algorithm>

#include "codegen/jit_emit.h"

namespace acu::codegen::jit {

using ir::DType;
using ir::IndexOp;
using ir::Op;

static Unsupported unknown(const std::string& name) {
    return {{"codegen.unsupported", {}, fmt::format("the name `{}` has no value", name)}};
}

const Buffer& Emitter::buffer(const std::string& name) {
    const auto it = buffers_.find(name);
    if (it == buffers_.end()) throw unknown(name);
    return it->second;
}

bool Emitter::from_data(const ir::Index& e) const {
    if (e->op == IndexOp::Name) return data_names_.contains(e->name);
    return e->op == IndexOp::Load || e->op == IndexOp::Segment || from_data(e->args);
}

bool Emitter::from_data(const std::vector<ir::Index>& subscripts) const {
    return std::ranges::any_of(subscripts, [&](const ir::Index& e) { return from_data(e); });
}

Val Emitter::index(const ir::Index& e) {
    switch (e->op) {
        case IndexOp::Const: return i64(e->value);
        case IndexOp::Name: {
            const auto it = names_.find(e->name);
            if (it == names_.end()) throw unknown(e->name);
            return it->second;
        }
        case IndexOp::Load: {
            const Buffer& source = buffer(e->name);
            const DType type = source.decl->type;
            if (!checked_ && !from_data(e->args)) return load(type, source.data, locate(source, e->args, nullptr));
            Val inside = nullptr;
            const Val at = locate(source, e->args, &inside);
            return either(inside, [&] { return load(type, source.data, at); }, [&] { return i64(0); });
        }
        case IndexOp::Segment: return segment(*e);
        default: {
            const Val a = index(e->args[0]), y = index(e->args[1]);
            return index_op(e->op, a, y);
        }
    }
}

Val Emitter::segment(const ir::IndexNode& e) {
    const Buffer& offsets = buffer(e.name);
    Val count = i64(1);
    for (const Val s : offsets.sizes) count = b.CreateMul(count, s);
    const Val t = index(e.args[0]);
    llvm::CallInst* c = helper("acu.segment", b.getInt64Ty(), {offsets.data, count, i64(static_cast<int64_t>(offsets.decl->type)), t}, false);
    c->setOnlyReadsMemory();
    c->setOnlyAccessesArgMemory();
    return c;
}

Val Emitter::locate(const Buffer& buffer, const std::vector<ir::Index>& subscripts, Val* inside) {
    Val at = i64(0);
    checked_ += inside != nullptr;
    if (inside) *inside = b.getTrue();
    for (size_t d = 0; d < subscripts.size(); ++d) {
        const Val i = b.CreateSub(index(subscripts[d]), buffer.origin[d]);
        if (inside) *inside = b.CreateAnd(*inside, b.CreateICmpULT(i, buffer.sizes[d]));
        at = b.CreateAdd(b.CreateMul(at, buffer.sizes[d]), i);
    }
    checked_ -= inside != nullptr;
    return at;
}

Val Emitter::value(const ir::Value& v) {
    switch (v->op) {
        case Op::Const: return constant(*v);
        case Op::OfIndex: return index(v->subscripts[0]);
        case Op::Load: return read(*v);
        case Op::Neg: return negate(v->type, value(v->args[0]));
        case Op::Not: return whole(b.CreateNot(truth(value(v->args[0]))));
        case Op::BitNot: return b.CreateNot(value(v->args[0]));
        case Op::And:
        case Op::Or: return lazily(*v);
        case Op::Select: return selected(*v);
        case Op::Cast: return convert(value(v->args[0]), *ir::type_named(v->name));
        case Op::Call: return call(*v);
        case Op::Reduce: throw Unsupported{{"codegen.unsupported", {}, "a reduction inside a value: the program is at tensor level"}};
        default: break;
    }
    const Val a = value(v->args[0]), y = value(v->args[1]);
    return arithmetic(v->op, v->type, a, y);
}

/// May be computed where the interpreter would not, and costs less than a branch.
static bool harmless(const ir::Value& v) {
    bool so = true;
    ir::visit(v, [&](const ir::ValueNode& n) {
        const bool dear = n.op == Op::Load || n.op == Op::Call || n.op == Op::Div || n.op == Op::Mod;
        so = so && !dear && std::ranges::none_of(n.subscripts, ir::mentions_load);
    });
    return so;
}

Val Emitter::lazily(const ir::ValueNode& v) {
    const bool conjunction = v.op == Op::And;
    const Val a = truth(value(v.args[0]));
    const auto second = [&] { return whole(truth(value(v.args[1]))); };
    if (harmless(v.args[1])) {
        const Val y = truth(value(v.args[1]));
        return whole(conjunction ? b.CreateAnd(a, y) : b.CreateOr(a, y));
    }
    return conjunction ? either(a, second, [&] { return i64(0); }) : either(a, [&] { return i64(1); }, second);
}

Val Emitter::selected(const ir::ValueNode& v) {
    const Val condition = truth(value(v.args[0]));
    if (!harmless(v.args[1]) || !harmless(v.args[2])) return either(condition, [&] { return value(v.args[1]); }, [&] { return value(v.args[2]); });
    Val x = value(v.args[1]), y = value(v.args[2]);
    if (x->getType() != y->getType()) x = to_double(x), y = to_double(y);
    return b.CreateSelect(condition, x, y);
}

Val Emitter::read(const ir::ValueNode& v) {
    const Buffer& source = buffer(v.name);
    const DType type = source.decl->type;
    if (v.args.empty() && !from_data(v.subscripts)) return load(type, source.data, locate(source, v.subscripts, nullptr));
    Val inside = nullptr;
    const Val at = locate(source, v.subscripts, &inside);
    return either(
        inside, [&] { return load(type, source.data, at); }, [&] { return v.args.empty() ? zero(type) : value(v.args[0]); });
}

Val Emitter::call(const ir::ValueNode& v) {
    std::vector<Val> args;
    args.reserve(v.args.size());
    for (const ir::Value& a : v.args) args.push_back(value(a));
    return function(v.name, v.type, args);
}

}  // namespace acu::codegen::jit
