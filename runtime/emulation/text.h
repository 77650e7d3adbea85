#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace acu::runtime::emulation {

/// A kernel of emitted text, as its head says.
struct KernelHead {
    std::string name;
    std::vector<std::string> parameters;  ///< names
    uint32_t launch_bounds = 0;           ///< 0: none, or not a number
};

/// The kernels (`extern "C" __global__ void …`) of CUDA or HIP text.
std::vector<KernelHead> kernels_in(const std::string& text);

/// C++ that calls each kernel with an array of pointers to its arguments, as `cuLaunchKernel` does. Defines, for a kernel k,
/// `void acu_call_k(void**)` and `const unsigned* acu_sizes_k()`: the number of its arguments, then their sizes.
std::string callers(const std::vector<KernelHead>& kernels);

/// Line `number` (from 1) of the text, without the blanks around it.
std::string line_of(const std::string& text, int number);

/// What the emitter wrote behind a line: "softmax.acu:12:5, decisions d3 d7" of `… // @softmax.acu:12:5 d3 d7`; else empty.
std::string provenance_of(const std::string& line);

}  // namespace acu::runtime::emulation
