#include "synth/evaluate/run.h"

#include <fmt/format.h>

#include <algorithm>

namespace acu::synth::evaluate {

using namespace ir;

namespace {

/// The buffers of one run, by tensor.
using Buffers = std::map<std::string, std::unique_ptr<runtime::Buffer>>;

Status allocate(runtime::Device& device, const Program& p, const Arguments& arguments, const Arrays& inputs, Buffers& buffers) {
    for (const Decl& d : p.decls) {
        if (d.scope != Scope::In && d.scope != Scope::Out && d.scope != Scope::Temp) continue;
        size_t bytes = info(d.type).bytes;
        for (const int64_t s : sizes_of(d, arguments.dims)) bytes *= static_cast<size_t>(s);
        auto b = device.allocate(bytes);
        if (!b) return b.why();
        if (d.scope == Scope::In)
            if (const Status up = (*b)->upload(inputs.at(d.name).bytes); !up) return up;
        buffers[d.name] = std::move(*b);
    }
    return ok();
}

using runtime::argument_of;

runtime::KernelArgument scalar_argument(DType t, double x) {
    switch (widened(t)) {
        case DType::F64: return argument_of(x);
        case DType::F32: return argument_of(static_cast<float>(x));
        case DType::I64: return argument_of(static_cast<int64_t>(x));
        case DType::Bool: return argument_of(x != 0);
        default: return argument_of(static_cast<int32_t>(x));
    }
}

int64_t contiguous_stride(const Decl& d, size_t axis, const Env& dims) {
    int64_t s = 1;
    const auto sizes = sizes_of(d, dims);
    for (size_t i = axis + 1; i < sizes.size(); ++i) s *= sizes[i];
    return s;
}

bool is_met(const codegen::Alignment& a, const Env& dims, const Buffers& buffers) {
    return std::ranges::all_of(a.dims, [&](const auto& d) { return dims.at(d.first) % d.second == 0; }) &&
           std::ranges::all_of(a.buffers, [&](const auto& b) { return buffers.at(b.first)->address() % static_cast<uint64_t>(b.second) == 0; });
}

/// Are the addresses such as its kernels need?
bool can_take(const codegen::Variant& v, const Buffers& buffers) {
    return std::ranges::all_of(v.kernels, [&](const codegen::Kernel& k) {
        return std::ranges::all_of(k.needs, [&](const auto& n) { return buffers.at(n.first)->address() % static_cast<uint64_t>(n.second) == 0; });
    });
}

/// A tensor as the copy engine sees it: the last dimension first, empty ones as one element that nobody copies.
runtime::TensorMapShape map_shape(const Decl& d, const codegen::TensorBox& box, const Env& dims) {
    runtime::TensorMapShape s;
    const auto sizes = sizes_of(d, dims);
    const auto bytes = static_cast<uint64_t>(info(d.type).bytes);
    uint64_t stride = bytes;
    for (size_t i = sizes.size(); i-- > 0;) {
        s.dims.push_back(static_cast<uint64_t>(std::max<int64_t>(1, sizes[i])));
        if (i + 1 < sizes.size()) s.strides.push_back(stride);
        stride *= s.dims.back();
    }
    for (const int64_t n : box.sizes) s.box.push_back(static_cast<uint32_t>(n));
    s.element_bytes = static_cast<uint32_t>(bytes), s.swizzle_bytes = static_cast<uint32_t>(box.swizzle);
    return s;
}

Result<std::vector<runtime::Launch>> launches_of(runtime::Device& device, const codegen::Variant& v, const Arguments& arguments, const Buffers& buffers) {
    std::vector<runtime::Launch> out;
    for (const codegen::Kernel& k : v.kernels) {
        const int64_t cells = ir::evaluate(k.cells, arguments.dims);
        if (cells <= 0) continue;
        runtime::Launch l{is_met(k.alignment, arguments.dims, buffers) ? k.name : k.unaligned(), static_cast<uint32_t>(k.grid(cells)), static_cast<uint32_t>(k.block()), {}};
        l.shared = static_cast<uint32_t>(k.shared), l.cluster = static_cast<uint32_t>(k.cluster);
        for (const codegen::KernelArgument& a : k.arguments) {
            const Decl* d = v.program.find(a.name);
            switch (a.kind) {
                case codegen::KernelArgument::Buffer: l.arguments.push_back(argument_of(buffers.at(a.name)->address())); break;
                case codegen::KernelArgument::Dim: l.arguments.push_back(argument_of(arguments.dims.at(a.name))); break;
                case codegen::KernelArgument::Scalar: l.arguments.push_back(scalar_argument(d->type, arguments.scalars.at(a.name))); break;
                case codegen::KernelArgument::Map: {
                    if (std::ranges::count(sizes_of(*d, arguments.dims), 0)) {    // nobody copies from it
                        l.arguments.push_back({std::vector<std::byte>(128)});
                        break;
                    }
                    auto map = device.tensor_map(buffers.at(a.name)->address(), map_shape(*d, a.box, arguments.dims));
                    if (!map) return map.why();
                    l.arguments.push_back(std::move(*map));
                    break;
                }
                case codegen::KernelArgument::Stride: l.arguments.push_back(argument_of(contiguous_stride(*d, a.axis, arguments.dims))); break;
            }
        }
        out.push_back(std::move(l));
    }
    return out;
}

/// Guard zones whole, inputs as they were.
Status check_memory(const Program& p, const Arrays& inputs, const Buffers& buffers) {
    for (const auto& [name, b] : buffers) {
        if (const Status g = b->check_guards(name); !g) return g;
        if (p.find(name)->scope != Scope::In) continue;
        std::vector<std::byte> now(b->bytes());
        if (const Status d = b->download(now); !d) return d;
        if (now != inputs.at(name).bytes) return Diagnostic{"run.input-changed", {}, fmt::format("the kernel changed its input `{}`", name), {}, {}, Exit::Wrong};
    }
    return ok();
}

}  // namespace

const Target& target_of(const runtime::Device& device) {
    const std::string arch = device.architecture();
    if (const Target* t = target_named(arch)) return *t;
    return *target_named(arch.starts_with("gfx") ? "gfx90a" : "sm_80");
}

Result<std::unique_ptr<runtime::Module>> load(runtime::Device& device, const codegen::Emitted& e) {
    return device.load(e.device, e.variants.front().program.name + (target_of(device).platform == Platform::Hip ? ".hip" : ".cu"));
}

Result<Run> run_emitted(runtime::Device& device, const codegen::Emitted& e, const Arguments& arguments, const Arrays& inputs) {
    auto module = load(device, e);
    return module ? run_loaded(device, **module, e, arguments, inputs) : Result<Run>(module.why());
}

Result<Run> run_loaded(runtime::Device& device, runtime::Module& module, const codegen::Emitted& e, const Arguments& arguments, const Arrays& inputs) {
    const codegen::Variant* v = e.variant_for(arguments.dims);
    if (!v) return Diagnostic{"plan.shape", {}, fmt::format("no variant of `{}` is for these sizes", e.variants.front().program.name)};
    Buffers buffers;
    if (const Status a = allocate(device, v->program, arguments, inputs, buffers); !a) return a.why();
    while (!can_take(*v, buffers)) {
        const codegen::Variant* next = e.variant_for(arguments.dims, v);
        if (!next) break;
        v = next;
        buffers.clear();
        if (const Status a = allocate(device, v->program, arguments, inputs, buffers); !a) return a.why();
    }
    const Program& p = v->program;
    Run out{device.name(), device.toolchain(), 0, {}};
    const auto launches = launches_of(device, *v, arguments, buffers);
    if (!launches) return launches.why();
    const auto seconds = device.time(*launches, module, 1);
    if (!seconds) return seconds.why();
    out.seconds = *seconds;
    if (const Status m = check_memory(p, inputs, buffers); !m) return m.why();
    for (const Decl& d : p.decls) {
        if (d.scope != Scope::Out) continue;
        Array a = Array::zeros(d.type, sizes_of(d, arguments.dims));
        if (const Status got = buffers.at(d.name)->download(a.bytes); !got) return got.why();
        out.outputs[d.name] = std::move(a);
    }
    return out;
}

}  // namespace acu::synth::evaluate
