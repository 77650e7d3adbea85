#include "codegen/jit_scalar.h"

#include <llvm/IR/Intrinsics.h>

#include <limits>

namespace acu::codegen::jit {

using ir::DType;
using ir::IndexOp;
using ir::Monoid;
using ir::Op;
namespace Intrinsic = llvm::Intrinsic;

ScalarBuilder::ScalarBuilder(llvm::Module& module, Host host)
    : module_(module), context_(module.getContext()), b(context_), host_(host) {}

Val ScalarBuilder::truth(Val x) { return real(x) ? b.getFalse() : b.CreateICmpNE(x, i64(0)); }
Val ScalarBuilder::whole(Val condition) { return b.CreateZExt(condition, b.getInt64Ty()); }

Val ScalarBuilder::to_float(Val x) {
    if (!real(x)) return b.CreateSIToFP(x, b.getFloatTy());
    return x->getType()->isFloatTy() ? x : b.CreateFPTrunc(x, b.getFloatTy());
}
Val ScalarBuilder::to_double(Val x) {
    if (!real(x)) return b.CreateSIToFP(x, b.getDoubleTy());
    return x->getType()->isDoubleTy() ? x : b.CreateFPExt(x, b.getDoubleTy());
}

Val ScalarBuilder::zero(DType type) {
    if (!is_float(type)) return i64(0);
    return llvm::ConstantFP::get(type == DType::F64 ? b.getDoubleTy() : b.getFloatTy(), 0.0);
}

Val ScalarBuilder::constant(const ir::ValueNode& v) {
    if (!is_float(v.type)) return i64(v.integer);
    const bool fits = v.number != v.number || static_cast<double>(static_cast<float>(v.number)) == v.number;
    return llvm::ConstantFP::get(v.type == DType::F64 || !fits ? b.getDoubleTy() : b.getFloatTy(), v.number);
}

Val ScalarBuilder::merge(Val x, llvm::BasicBlock* from, Val y, llvm::BasicBlock* other) {
    if (x->getType() != y->getType()) {
        llvm::IRBuilderBase::InsertPointGuard guard(b);
        b.SetInsertPoint(from->getTerminator());
        x = to_double(x);
        b.SetInsertPoint(other->getTerminator());
        y = to_double(y);
    }
    llvm::PHINode* phi = b.CreatePHI(x->getType(), 2);
    phi->addIncoming(x, from);
    phi->addIncoming(y, other);
    return phi;
}

llvm::CallInst* ScalarBuilder::helper(const std::string& name, llvm::Type* result, const std::vector<Val>& args, bool pure) {
    std::vector<llvm::Type*> types;
    types.reserve(args.size());
    for (const Val a : args) types.push_back(a->getType());
    llvm::FunctionCallee callee = module_.getOrInsertFunction(name, llvm::FunctionType::get(result, types, false));
    auto* f = llvm::cast<llvm::Function>(callee.getCallee());
    f->setDoesNotThrow();
    f->setWillReturn();
    f->addFnAttr(llvm::Attribute::NoCallback);
    if (pure) f->setDoesNotAccessMemory();
    return b.CreateCall(callee, args);
}

// ---- integers

Val ScalarBuilder::floor_div(Val a, Val y) {
    const auto *x = llvm::dyn_cast<llvm::ConstantInt>(a), *c = llvm::dyn_cast<llvm::ConstantInt>(y);
    if (x && c) return i64(ir::apply(IndexOp::Div, x->getSExtValue(), c->getSExtValue()));
    if (c && c->getValue().isPowerOf2() && !c->isNegative()) return b.CreateAShr(a, c->getValue().logBase2());
    const Val none = b.CreateICmpEQ(y, i64(0)), minus = b.CreateICmpEQ(y, i64(-1));
    const Val safe = b.CreateSelect(b.CreateOr(none, minus), i64(1), y);
    const Val q = b.CreateSDiv(a, safe), r = b.CreateSub(a, b.CreateMul(q, safe));
    const Val below = b.CreateAnd(b.CreateICmpNE(r, i64(0)), b.CreateICmpSLT(b.CreateXor(a, safe), i64(0)));
    const Val floor = b.CreateSub(q, whole(below));
    return b.CreateSelect(none, i64(0), b.CreateSelect(minus, b.CreateNeg(a), floor));
}

Val ScalarBuilder::floor_mod(Val a, Val y) {
    const auto *x = llvm::dyn_cast<llvm::ConstantInt>(a), *c = llvm::dyn_cast<llvm::ConstantInt>(y);
    if (x && c) return i64(ir::apply(IndexOp::Mod, x->getSExtValue(), c->getSExtValue()));
    if (c && c->getValue().isPowerOf2() && !c->isNegative()) return b.CreateAnd(a, i64(c->getSExtValue() - 1));
    const Val trivial = b.CreateOr(b.CreateICmpEQ(y, i64(0)), b.CreateICmpEQ(y, i64(-1)));
    const Val safe = b.CreateSelect(trivial, i64(1), y);
    const Val r = b.CreateSRem(a, safe);
    const Val below = b.CreateAnd(b.CreateICmpNE(r, i64(0)), b.CreateICmpSLT(b.CreateXor(r, safe), i64(0)));
    return b.CreateAdd(r, b.CreateSelect(below, safe, i64(0)));
}

Val ScalarBuilder::index_op(IndexOp op, Val a, Val y) {
    switch (op) {
        case IndexOp::Add: return b.CreateAdd(a, y);
        case IndexOp::Sub: return b.CreateSub(a, y);
        case IndexOp::Mul: return b.CreateMul(a, y);
        case IndexOp::Div: return floor_div(a, y);
        case IndexOp::Mod: return floor_mod(a, y);
        case IndexOp::Min: return b.CreateSelect(b.CreateICmpSLT(y, a), y, a);
        case IndexOp::Max: return b.CreateSelect(b.CreateICmpSLT(a, y), y, a);
        default: return i64(0);
    }
}

static unsigned bits_of(DType type) { return type == DType::Bool ? 1 : static_cast<unsigned>(8 * ir::info(type).bytes); }
static bool is_unsigned(DType type) { return type == DType::Bool || type == DType::U8; }

Val ScalarBuilder::wrap(Val x, DType type) {
    if (type == DType::Bool) return whole(truth(x));
    if (type == DType::I64) return x;
    const Val low = b.CreateTrunc(x, b.getIntNTy(bits_of(type)));
    return is_unsigned(type) ? b.CreateZExt(low, b.getInt64Ty()) : b.CreateSExt(low, b.getInt64Ty());
}

Val ScalarBuilder::saturate(Val x, DType type) {
    const unsigned bits = bits_of(type);
    if (real(x)) {
        const auto id = is_unsigned(type) ? Intrinsic::fptoui_sat : Intrinsic::fptosi_sat;
        const Val cut = b.CreateIntrinsic(id, {b.getIntNTy(bits), x->getType()}, {x});
        return is_unsigned(type) ? b.CreateZExt(cut, b.getInt64Ty()) : b.CreateSExt(cut, b.getInt64Ty());
    }
    if (type == DType::I64) return x;
    const int64_t low = is_unsigned(type) ? 0 : -(int64_t{1} << (bits - 1));
    const int64_t high = (int64_t{1} << (is_unsigned(type) ? bits : bits - 1)) - 1;
    return index_op(IndexOp::Max, index_op(IndexOp::Min, x, i64(high)), i64(low));
}

// ---- stored elements

llvm::Type* ScalarBuilder::storage(DType type) {
    switch (type) {
        case DType::F16: return host_.f16c ? b.getHalfTy() : static_cast<llvm::Type*>(b.getInt16Ty());
        case DType::Tf32:
        case DType::F32: return b.getFloatTy();
        case DType::F64: return b.getDoubleTy();
        default: return b.getIntNTy(static_cast<unsigned>(8 * ir::info(type).bytes));
    }
}

Val ScalarBuilder::element(DType type, Val base, Val index) { return b.CreateGEP(storage(type), base, index); }
Val ScalarBuilder::load(DType type, Val base, Val index) { return decode(type, b.CreateLoad(storage(type), element(type, base, index))); }
void ScalarBuilder::store(DType type, Val base, Val index, Val x) { b.CreateStore(encode(type, x), element(type, base, index)); }

Val ScalarBuilder::decode(DType type, Val bits) {
    switch (type) {
        case DType::Bool: return whole(b.CreateICmpNE(bits, b.getInt8(0)));
        case DType::U8: return b.CreateZExt(bits, b.getInt64Ty());
        case DType::F8E4M3:
        case DType::F8E5M2: return decode_f8(type, bits);
        case DType::F16:
            if (host_.f16c) return b.CreateFPExt(bits, b.getFloatTy());
            return helper("acu.widen.f16", b.getFloatTy(), {b.CreateZExt(bits, b.getInt32Ty())}, true);
        case DType::BF16: return b.CreateBitCast(b.CreateShl(b.CreateZExt(bits, b.getInt32Ty()), 16), b.getFloatTy());
        case DType::Tf32:
        case DType::F32:
        case DType::F64: return bits;
        default: return b.CreateSExt(bits, b.getInt64Ty());
    }
}

Val ScalarBuilder::decode_f8(DType type, Val bits) {
    const std::string name = "acu.table." + std::string(ir::name_of(type));
    auto* table = llvm::cast<llvm::GlobalVariable>(module_.getOrInsertGlobal(name, llvm::ArrayType::get(b.getFloatTy(), 256)));
    table->setConstant(true);
    return b.CreateLoad(b.getFloatTy(), b.CreateGEP(b.getFloatTy(), table, b.CreateZExt(bits, b.getInt64Ty())));
}

Val ScalarBuilder::encode(DType type, Val x) {
    if (is_float(type)) {
        if (!real(x)) x = to_double(x);
        return type == DType::F64 ? to_double(x) : encode_float(type, to_float(x));
    }
    if (real(x)) x = saturate(x, type);
    if (type == DType::Bool) return b.CreateZExt(truth(x), b.getInt8Ty());
    return b.CreateTrunc(x, storage(type));
}

Val ScalarBuilder::encode_float(DType type, Val x) {
    const auto narrow = [&](llvm::Type* t) {
        return b.CreateTrunc(helper("acu.narrow." + std::string(ir::name_of(type)), b.getInt32Ty(), {x}, true), t);
    };
    switch (type) {
        case DType::F8E4M3:
        case DType::F8E5M2: return narrow(b.getInt8Ty());
        case DType::F16: return host_.f16c ? b.CreateFPTrunc(x, b.getHalfTy()) : narrow(b.getInt16Ty());
        case DType::BF16: return encode_bf16(x);
        default: return x;
    }
}

Val ScalarBuilder::encode_bf16(Val x) {
    const Val bits = b.CreateBitCast(x, b.getInt32Ty()), high = b.CreateLShr(bits, 16);
    const Val nearest = b.CreateLShr(b.CreateAdd(bits, b.CreateAdd(b.CreateAnd(high, 1), b.getInt32(0x7fff))), 16);
    const Val picked = b.CreateSelect(b.CreateFCmpUNO(x, x), b.CreateOr(high, b.getInt32(0x40)), nearest);
    return b.CreateTrunc(picked, b.getInt16Ty());
}

Val ScalarBuilder::round_tf32(Val x) {
    const Val bits = b.CreateBitCast(x, b.getInt32Ty());
    const Val nearest = b.CreateAnd(b.CreateAdd(bits, b.getInt32(0x1000)), b.getInt32(~0x1fffu));
    const Val finite = b.CreateICmpNE(b.CreateAnd(bits, b.getInt32(0x7f800000)), b.getInt32(0x7f800000));
    return b.CreateSelect(finite, b.CreateBitCast(nearest, b.getFloatTy()), x);
}

Val ScalarBuilder::convert(Val x, DType to) {
    if (to == DType::Bool) return whole(real(x) ? b.CreateFCmpUNE(x, llvm::ConstantFP::get(x->getType(), 0.0)) : truth(x));
    if (!is_float(to)) return saturate(x, to);
    if (to == DType::F64) return to_double(x);
    const Val narrow = to_float(x);
    return to == DType::Tf32 ? round_tf32(narrow) : decode(to, encode_float(to, narrow));
}

// ---- operators

Val ScalarBuilder::arithmetic(Op op, DType type, Val a, Val y) {
    return real(a) ? real_arithmetic(op, type, a, y) : whole_arithmetic(op, type, a, y);
}

Val ScalarBuilder::negate(DType type, Val a) { return real(a) ? b.CreateFNeg(a) : wrap(b.CreateNeg(a), type); }

/// Two f32 operands are combined in f32: rounding the f64 result of + - * / to f32 gives the same number.
Val ScalarBuilder::real_arithmetic(Op op, DType type, Val a, Val y) {
    if (a->getType() != y->getType() || type == DType::F64) a = to_double(a), y = to_double(y);
    const auto rounded = [&](Val x) { return type == DType::F64 ? x : to_float(x); };
    switch (op) {
        case Op::Add: return rounded(b.CreateFAdd(a, y));
        case Op::Sub: return rounded(b.CreateFSub(a, y));
        case Op::Mul: return rounded(b.CreateFMul(a, y));
        case Op::Div: return rounded(b.CreateFDiv(a, y));
        default: return type == DType::Bool ? compare(op, a, y) : zero(type);
    }
}

Val ScalarBuilder::whole_arithmetic(Op op, DType type, Val a, Val y) {
    const Val shift = b.CreateAnd(y, i64(type == DType::I64 ? 63 : 31));
    switch (op) {
        case Op::Add: return wrap(b.CreateAdd(a, y), type);
        case Op::Sub: return wrap(b.CreateSub(a, y), type);
        case Op::Mul: return wrap(b.CreateMul(a, y), type);
        case Op::Div: return wrap(floor_div(a, y), type);
        case Op::Mod: return floor_mod(a, y);
        case Op::Shl: return wrap(b.CreateShl(a, shift), type);
        case Op::Shr: return b.CreateAShr(a, shift);
        case Op::BitAnd: return b.CreateAnd(a, y);
        case Op::BitXor: return b.CreateXor(a, y);
        case Op::BitOr: return b.CreateOr(a, y);
        default: return compare(op, a, y);
    }
}

Val ScalarBuilder::compare(Op op, Val a, Val y) {
    using P = llvm::CmpInst::Predicate;
    const bool r = real(a);
    if (r && a->getType() != y->getType()) a = to_double(a), y = to_double(y);
    const auto is = [&](P floating, P integer) { return whole(r ? b.CreateFCmp(floating, a, y) : b.CreateICmp(integer, a, y)); };
    switch (op) {
        case Op::Eq: return is(P::FCMP_OEQ, P::ICMP_EQ);
        case Op::Ne: return is(P::FCMP_UNE, P::ICMP_NE);
        case Op::Lt: return is(P::FCMP_OLT, P::ICMP_SLT);
        case Op::Le: return is(P::FCMP_OLE, P::ICMP_SLE);
        case Op::Gt: return is(P::FCMP_OGT, P::ICMP_SGT);
        default: return is(P::FCMP_OGE, P::ICMP_SGE);
    }
}

Val ScalarBuilder::maximum(Val a, Val y, bool greater) {
    if (!real(a)) return index_op(greater ? IndexOp::Max : IndexOp::Min, a, y);
    if (a->getType() != y->getType()) a = to_double(a), y = to_double(y);
    const Val wins = greater ? b.CreateFCmpOGT(a, y) : b.CreateFCmpOLT(a, y);
    return b.CreateSelect(b.CreateOr(wins, b.CreateFCmpUNO(a, a)), a, y);
}

Val ScalarBuilder::better(Monoid m, Val a, Val ia, Val y, Val iy) {
    const Val na = b.CreateFCmpUNO(a, a), ny = b.CreateFCmpUNO(y, y), first = b.CreateICmpSLT(ia, iy);
    const Val wins = m == Monoid::ArgMin ? b.CreateFCmpOLT(a, y) : b.CreateFCmpOGT(a, y);
    const Val ordered = b.CreateSelect(b.CreateFCmpOEQ(a, y), first, wins);
    const Val nan = b.CreateSelect(b.CreateAnd(na, ny), first, na);
    return b.CreateOr(b.CreateICmpSLT(iy, i64(0)), b.CreateSelect(b.CreateOr(na, ny), nan, ordered));
}

// ---- functions

Val ScalarBuilder::function(const std::string& name, DType type, const std::vector<Val>& args) {
    if (!real(args[0])) return whole_function(name, type, args);
    if (const Val v = inlined(name, args)) return v;
    std::vector<Val> three = args;
    llvm::Type* t = args[0]->getType();
    while (three.size() < 3) three.push_back(llvm::ConstantFP::get(t, 0.0));
    return helper("acu." + name + (t->isDoubleTy() ? ".f64" : ".f32"), t, three, true);
}

Val ScalarBuilder::whole_function(const std::string& name, DType type, const std::vector<Val>& args) {
    const Val a = args[0];
    if (name == "abs") return wrap(b.CreateSelect(b.CreateICmpSLT(a, i64(0)), b.CreateNeg(a), a), type);
    if (name == "sign") return b.CreateSub(whole(b.CreateICmpSGT(a, i64(0))), whole(b.CreateICmpSLT(a, i64(0))));
    return wrap(maximum(a, args.size() > 1 ? args[1] : i64(0), name == "max"), type);
}

/// The functions whose bodies in ir/function.cpp LLVM has as exact operations; null for others.
Val ScalarBuilder::inlined(const std::string& name, const std::vector<Val>& args) {
    const Val a = args[0];
    llvm::Type* t = a->getType();
    const auto number = [&](double x) { return llvm::ConstantFP::get(t, x); };
    const auto root = [&] { return b.CreateUnaryIntrinsic(Intrinsic::sqrt, a); };
    if (name == "sqrt") return root();
    if (name == "rsqrt") return b.CreateFDiv(number(1), root());
    if (name == "max" || name == "min") return maximum(a, args[1], name == "max");
    if (name == "isnan") return whole(b.CreateFCmpUNO(a, a));
    if (name == "isinf") return whole(b.CreateFCmpOEQ(b.CreateUnaryIntrinsic(Intrinsic::fabs, a), number(std::numeric_limits<double>::infinity())));
    if (name == "fma" && host_.fma) return b.CreateIntrinsic(Intrinsic::fma, {t}, args);
    if (name == "sign") {
        const Val below = b.CreateSelect(b.CreateFCmpOLT(a, number(0)), number(-1), a);
        return b.CreateSelect(b.CreateFCmpOGT(a, number(0)), number(1), below);
    }
    return rounding(name, a);
}

Val ScalarBuilder::rounding(const std::string& name, Val a) {
    const auto unary = [&](Intrinsic::ID id) { return b.CreateUnaryIntrinsic(id, a); };
    if (name == "abs") return unary(Intrinsic::fabs);
    if (name == "floor") return unary(Intrinsic::floor);
    if (name == "ceil") return unary(Intrinsic::ceil);
    if (name == "trunc") return unary(Intrinsic::trunc);
    if (name == "round") return unary(Intrinsic::nearbyint);
    return nullptr;
}

}  // namespace acu::codegen::jit
