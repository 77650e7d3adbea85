#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "ir/microkernel.h"
#include "runtime/device.h"
#include "target/target.h"

namespace acu {

/// One launch of a test kernel: its arguments are the input buffers, the output buffer, then the numbers.
struct Trial {
    std::string kernel;
    std::string what;    ///< `f32, 96 threads`
    uint32_t grid = 1, block = 1, cluster = 1, shared = 0;
    std::vector<std::vector<std::byte>> inputs = {};
    size_t output_bytes = 0;
    std::vector<int32_t> numbers = {};
    std::vector<runtime::TensorMapShape> maps = {};    ///< of the first input, or of the output where there is none, behind the numbers
    std::function<std::string(std::span<const std::byte>)> fault = {};    ///< what is wrong with the output, compared with a scalar reference; empty: nothing
};

/// The kernels that exercise a microkernel over its whole domain on a target, and their launches.
struct TrialSet {
    std::string headers;
    std::vector<std::string> kernels = {};
    std::vector<Trial> trials = {};
    /// All kernels, or only the last one, which has the widest type.
    std::string source(bool only_last = false) const;
};
TrialSet trials_of(const ir::Microkernel& m, const Target& target);

// The parts of it, one a kind.
TrialSet copy_trials(const ir::Microkernel& m, const Target& target);
TrialSet exchange_trials(const ir::Microkernel& m, const Target& target);
TrialSet reduction_trials(const ir::Microkernel& m, const Target& target);
TrialSet matrix_trials(const ir::Microkernel& m, const Target& target);
TrialSet merge_trials(const ir::Microkernel& m, const Target& target);

/// `text` with every `$name` replaced.
std::string filled(std::string text, const std::vector<std::pair<std::string, std::string>>& names);

}  // namespace acu
