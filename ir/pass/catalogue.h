#pragma once
#include <string_view>
#include <vector>

namespace acu::ir::pass {

/// What a schedule may say of a pass: its name, how many names of statements, buffers or loops it takes first, and its named parameters.
struct Signature {
    std::string_view name;
    int least_sites, most_sites;
    std::vector<std::string_view> parameters;
    std::string_view doc;
};

/// Every pass of the catalogue, in alphabetical order.
const std::vector<Signature>& signatures();
const Signature* signature(std::string_view name);

}  // namespace acu::ir::pass
