#pragma once
#include <nlohmann/json.hpp>
#include <optional>

#include "support/result.h"

// Reading of JSON objects whose members are all known: the first thing that is wrong becomes the diagnostic.
namespace acu::synth::record {

using Json = nlohmann::ordered_json;

/// The members of one object. Each `read` takes one member, where it is there; `done` says what was wrong, or which member nothing knows.
class Members {
  public:
    /// `what`: `a step`, `the plan`.
    Members(const Json& j, std::string what, std::string code, std::string help = {});

    bool has(const char* name) const { return j_.is_object() && j_.contains(name); }
    const Json* take(const char* name);
    void text(const char* name, std::string& out, size_t limit);
    void word(const char* name, std::string& out, const std::vector<std::string>& one_of);
    void number(const char* name, int64_t& out, int64_t low, int64_t high);
    void require(const char* name);
    void wrong(const std::string& why);
    bool failed() const { return bad_.has_value(); }
    Status done();

  private:
    const Json& j_;
    std::string what_, code_, help_;
    std::vector<std::string> known_;
    std::optional<Diagnostic> bad_;
};

/// A whole number that an int64_t holds.
std::optional<int64_t> whole(const Json& j);
/// One line without control characters, and without white space around it.
bool is_line(std::string_view text, size_t limit);

}  // namespace acu::synth::record
