#include "runtime/library.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <utility>

namespace acu::runtime {

Result<Library> Library::open(const std::string& name) {
    void* handle = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (handle) return Library(handle, name);
    const char* said = dlerror();
    std::string why = said ? said : "no reason given";
    if (why.starts_with(name + ": ")) why.erase(0, name.size() + 2);
    return Diagnostic{.code = "library.missing", .message = fmt::format("cannot open `{}`: {}", name, why), .exit = Exit::Lacking};
}

Result<Library> Library::open_first(const std::vector<std::string>& names) {
    Diagnostic first{.code = "library.missing", .message = "no library name to open", .exit = Exit::Lacking};
    for (size_t i = 0; i < names.size(); ++i) {
        Result<Library> library = open(names[i]);
        if (library) return library;
        if (i == 0) first = library.why();
    }
    return first;
}

Library::Library(Library&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)), name_(std::move(other.name_)) {}

Library& Library::operator=(Library&& other) noexcept {
    std::swap(handle_, other.handle_);
    std::swap(name_, other.name_);
    return *this;
}

Library::~Library() {
    if (handle_) dlclose(handle_);
}

void* Library::find(const char* symbol) const { return handle_ ? dlsym(handle_, symbol) : nullptr; }

Status Binder::status() const {
    if (missing_.empty()) return ok();
    return Diagnostic{.code = "library.old",
                      .message = fmt::format("`{}` has no function `{}`", library_.name(), missing_),
                      .help = "install a newer version of this library",
                      .exit = Exit::Lacking};
}

}  // namespace acu::runtime
