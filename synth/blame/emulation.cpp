#include <fmt/format.h>

#include <cstring>

#include "runtime/device.h"
#include "synth/blame/blame.h"

namespace acu::synth::blame {

using namespace ir;

namespace {

template <class T>
runtime::KernelArgument bytes_of(T v) {
    runtime::KernelArgument a;
    a.bytes.resize(sizeof v);
    std::memcpy(a.bytes.data(), &v, sizeof v);
    return a;
}

runtime::KernelArgument scalar_argument(DType t, double x) {
    switch (widened(t)) {
        case DType::F64: return bytes_of(x);
        case DType::F32: return bytes_of(static_cast<float>(x));
        case DType::I64: return bytes_of(static_cast<int64_t>(x));
        case DType::Bool: return bytes_of(x != 0);
        default: return bytes_of(static_cast<int32_t>(x));
    }
}

/// One run of an emitted program on guarded, poisoned buffers of a device.
class Run {
  public:
    Run(runtime::Device& device, const codegen::Emitted& e, const Arguments& arguments) : device_(device), e_(e), arguments_(arguments) {}

    Result<Arrays> on(runtime::Module& module, const Arrays& inputs) {
        if (const Status a = allocate(inputs); !a) return a.why();
        for (const codegen::Kernel& k : e_.kernels) {
            const int64_t cells = evaluate(k.cells, arguments_.dims);
            if (cells <= 0) continue;
            if (const Status l = device_.launch(module, launch_of(k, cells)); !l) return l.why();
        }
        return outputs(inputs);
    }

  private:
    Status allocate(const Arrays& inputs) {
        for (const Decl& d : e_.program.decls) {
            if (d.scope != Scope::In && d.scope != Scope::Out && d.scope != Scope::Temp) continue;
            size_t bytes = info(d.type).bytes;
            for (const int64_t s : sizes_of(d, arguments_.dims)) bytes *= static_cast<size_t>(s);
            auto b = device_.allocate(bytes);
            if (!b) return b.why();
            if (d.scope == Scope::In)
                if (const Status up = (*b)->upload(inputs.at(d.name).bytes); !up) return up;
            buffers_[d.name] = std::move(*b);
        }
        return ok();
    }

    int64_t contiguous_stride(const Decl& d, size_t axis) const {
        const auto sizes = sizes_of(d, arguments_.dims);
        int64_t s = 1;
        for (size_t i = axis + 1; i < sizes.size(); ++i) s *= sizes[i];
        return s;
    }

    runtime::KernelArgument argument(const codegen::KernelArgument& a) const {
        switch (a.kind) {
            case codegen::KernelArgument::Buffer: return bytes_of(buffers_.at(a.name)->address());
            case codegen::KernelArgument::Dim: return bytes_of(arguments_.dims.at(a.name));
            case codegen::KernelArgument::Scalar: return scalar_argument(e_.program.find(a.name)->type, arguments_.scalars.at(a.name));
            default: return bytes_of(contiguous_stride(*e_.program.find(a.name), a.axis));
        }
    }

    runtime::Launch launch_of(const codegen::Kernel& k, int64_t cells) const {
        runtime::Launch l{k.name, static_cast<uint32_t>(k.grid(cells)), static_cast<uint32_t>(k.block()), {}};
        l.shared = static_cast<uint32_t>(k.shared);
        for (const codegen::KernelArgument& a : k.arguments) l.arguments.push_back(argument(a));
        return l;
    }

    Result<Arrays> outputs(const Arrays& inputs) const {
        Arrays out;
        for (const Decl& d : e_.program.decls) {
            const auto it = buffers_.find(d.name);
            if (it == buffers_.end()) continue;
            if (const Status g = it->second->check_guards(d.name); !g) return g.why();
            if (d.scope == Scope::Temp) continue;
            Array a = Array::zeros(d.type, sizes_of(d, arguments_.dims));
            if (const Status got = it->second->download(a.bytes); !got) return got.why();
            if (d.scope == Scope::In && a.bytes != inputs.at(d.name).bytes) return Diagnostic{"run.input-changed", {}, fmt::format("the kernel changed its input `{}`", d.name), {}, {}, Exit::Wrong};
            if (d.scope == Scope::Out) out[d.name] = std::move(a);
        }
        return out;
    }

    runtime::Device& device_;
    const codegen::Emitted& e_;
    const Arguments& arguments_;
    std::map<std::string, std::unique_ptr<runtime::Buffer>> buffers_;
};

Result<Arrays> run_text(const Target& target, const codegen::Emitted& e, const Arguments& arguments, const Arrays& inputs) {
    std::unique_ptr<runtime::Module> module;
    Result<Arrays> out = Arrays{};
    for (const runtime::EmulationOptions& options : {runtime::EmulationOptions{.seed = 0, .guard = true}, runtime::EmulationOptions{.seed = 5}}) {
        auto device = runtime::open_device({runtime::DeviceId::Kind::Emulated, 0, std::string(target.name)}, {}, options);
        if (!device) return device.why();
        if (!module) {
            auto loaded = (*device)->load(e.device, e.program.name + (target.platform == Platform::Hip ? ".hip" : ".cu"));
            if (!loaded) return loaded.why();
            module = std::move(*loaded);
        }
        out = Run(**device, e, arguments).on(*module, inputs);
        if (!out) return out;
    }
    return out;
}

}  // namespace

Emulate in_emulation(const Target& target, const Arguments& arguments, const Arrays& inputs, Emit emit) {
    if (!emit) emit = [&target](const Program& p) { return codegen::emit(p, target, {p.name, {}, p, {}}, {.provenance = true}); };
    return [&target, arguments, inputs, emit](const Program& kernels) -> Result<Arrays> {
        const auto e = emit(kernels);
        return e ? run_text(target, *e, arguments, inputs) : Result<Arrays>(e.why());
    };
}

}  // namespace acu::synth::blame
