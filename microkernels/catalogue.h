#pragma once
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "ir/microkernel.h"
#include "support/result.h"
#include "target/target.h"

namespace acu::microkernels {

/// Every microkernel, by id.
const std::vector<ir::Microkernel>& catalogue();
const ir::Microkernel* find(std::string_view id);

/// Texts of microkernels/ by file stem (generated at build time): the headers and `stamps`.
const std::map<std::string, std::string_view>& texts();

/// `device` and the headers that `m` needs, joined, ready to stand before a kernel.
std::string headers_of(const ir::Microkernel& m);

nlohmann::ordered_json describe(const ir::Microkernel& m);

/// A proof that a microkernel was compared with its scalar reference over its whole domain: of which text, on what, by what, when.
struct Stamp {
    std::string id;
    std::string target;
    std::string device;       ///< `NVIDIA H200`, `emulation`
    std::string hash;
    std::string toolchain;
    std::string date;         ///< 2026-01-31
    int64_t trials = 0;
    bool operator==(const Stamp&) const = default;
};

/// Of the headers' text without comments and of the descriptor, in hexadecimal: what a stamp vouches for. `device`, which all emitted text shares, is not part
/// of it: every test of an emitted kernel tests that.
std::string hash_of(const ir::Microkernel& m);

/// Code `stamps.syntax`.
Result<std::vector<Stamp>> parse_stamps(std::string_view json);
/// One stamp a line, sorted.
std::string print_stamps(std::vector<Stamp> stamps);

/// The stamps that this compiler was built with.
const std::vector<Stamp>& stamps();

/// Whether the text that a stamp vouches for is the present one.
bool valid(const Stamp& s);

/// Whether a valid stamp of a device or of the emulation of this target exists. The CPU has no microkernels.
bool stamped(const ir::Microkernel& m, const Target& target);

/// The stamps to keep when `made` are written into `old`: a new one replaces its like, and those out of date go.
std::vector<Stamp> merged(const std::vector<Stamp>& old, const std::vector<Stamp>& made);

}  // namespace acu::microkernels
