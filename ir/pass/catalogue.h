#pragma once
#include "ir/pass/pass.h"

namespace acu::ir::pass {

/// Does the language keep this name for a pass that this compiler does not have yet? `acuc check` accepts such a step, nothing can apply it.
bool is_reserved(std::string_view name);

/// Every name that a step may give as its pass, for `did you mean`.
std::vector<std::string> pass_names();
const ParamSpec* param_named(const Pass& pass, std::string_view name);

/// How many names `pass` takes, in words, where `count` is not such a number.
std::optional<std::string> wrong_count(const Pass& pass, size_t count);

/// What is wrong with a parameter, the parameters or a whole step whatever the program is. It is the part of the driver's check that needs no program, so that a plan is refused before
/// anything runs. Codes `pass.unknown`, `pass.later`, `site.count`, `param.*`.
std::optional<Diagnostic> misfit(const Pass& pass, const ParamSpec& spec, const Arguments& args);
std::optional<Diagnostic> misfit(const Step& step);

}  // namespace acu::ir::pass
