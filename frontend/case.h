#pragma once
#include "frontend/instantiate.h"

namespace acu::frontend {

/// How a tensor input of a case is drawn (docs/language.md, "Cases").
struct Distribution {
    std::string kind;                       ///< normal, uniform, integers, rows, spikes, pareto, angles; `list` for given integers
    std::vector<double> parameters = {};
    std::vector<int64_t> list = {};
    Loc loc = {};
};

/// A case with its settings sorted out.
struct Settings {
    Bindings bindings;
    std::map<std::string, Distribution> inputs;
};

/// Codes `case.*`.
Settings settings_of(const CaseDecl& c, const OpDecl& op, std::vector<Diagnostic>& found);

/// `M=4096,T=bf16,causal=true,eps=1e-5`, as `--set` gives it, on top of `settings`. Codes `set.*`, exit 2.
Status apply_sets(const std::vector<std::string>& sets, const OpDecl& op, Settings& settings);

}  // namespace acu::frontend
