#include "runtime/emulation/report.h"

#include <dlfcn.h>
#include <signal.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <new>
#include <sstream>

#include "runtime/process.h"

namespace acu::runtime::emulation {

namespace {

template <size_t N>
void copy_text(char (&to)[N], const std::string& from) {
    const size_t n = std::min(N - 1, from.size());
    std::memcpy(to, from.data(), n);
    to[n] = 0;
}

/// The lines of the emitted text that a site lies in, innermost first: functions are inlined into each other.
std::vector<int> frames_of(Site site) {
    Dl_info info{};
    if (!site || !dladdr(site, &info) || machine.job->library != info.dli_fname) return {};
    const auto offset = static_cast<const char*>(site) - static_cast<const char*>(info.dli_fbase) - 1;  // within the call, not behind it
    const ProcessResult r = run_process({.arguments = {"addr2line", "-i", "-e", machine.job->library, fmt::format("{:#x}", offset)}, .folder = "", .limit = std::chrono::seconds(20)});
    std::vector<int> lines;
    std::istringstream out(r.output);
    for (std::string frame; std::getline(out, frame);) {
        const size_t colon = frame.find(':');
        if (colon == std::string::npos || std::filesystem::path(frame.substr(0, colon)).filename() != machine.job->file_name) continue;
        if (const int line = std::atoi(frame.c_str() + colon + 1)) lines.push_back(line);
    }
    return lines;
}

Place find_place(Site site) {
    const std::vector<int> lines = frames_of(site);
    if (lines.empty()) return {};
    Place p{lines.back(), fmt::format("{}:{}", machine.job->file_name, lines.back())};
    if (lines.front() != lines.back()) p.text += fmt::format(", in line {}", lines.front());
    return p;
}

void on_crash(int signal, siginfo_t* info, void* context) {
    Site site = nullptr;
#if defined(__x86_64__)
    site = reinterpret_cast<const char*>(static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_RIP]) + 1;
#else
    (void)context;
#endif
    if (signal == SIGFPE) fail("emu.arithmetic", site, "divides an integer by zero");
    if (signal == SIGILL) fail("emu.trap", site, "stops at a trap");
    if (signal == SIGABRT) fail("emu.internal", site, "made the emulation itself fail");
    if (machine.stacks && machine.stacks->hold(info->si_addr)) fail("emu.stack", site, "needs more stack than a thread has");
    fail("emu.bounds", site, "accesses the address {}, which is in no buffer", info->si_addr);
}

}  // namespace

const Place& place_of(Site site) {
    static std::map<Site, Place> known;
    const auto it = known.find(site);
    return it != known.end() ? it->second : known.emplace(site, find_place(site)).first->second;
}

bool same_site(Site a, Site b) { return a == b || (place_of(a).line != 0 && place_of(a).text == place_of(b).text); }

std::string describe(const Thread* t) {
    return fmt::format("block {}, thread {} (warp {}, lane {})", t->block.x, t->index, t->index / machine.warp_size, t->lane);
}

void report(const char* code, Site site, const std::string& message, const std::string& more) {
    Finding& f = *machine.finding;
    const Place& p = place_of(site);
    copy_text(f.code, code);
    copy_text(f.message, message);
    copy_text(f.where, p.text);
    copy_text(f.thread, machine.running ? describe(machine.running) : "");
    copy_text(f.more, more);
    f.line = p.line;
    f.state = Finding::Found;
    _exit(0);
}

void catch_crashes() {
    static std::byte alternative[256 << 10];  // a thread's own stack may be what ran out
    stack_t stack{};
    stack.ss_sp = alternative;
    stack.ss_size = sizeof alternative;
    sigaltstack(&stack, nullptr);
    struct sigaction action{};
    action.sa_sigaction = on_crash;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK | static_cast<int>(SA_RESETHAND);
    for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}) sigaction(signal, &action, nullptr);
    std::set_new_handler([] { report("emu.memory", nullptr, "needs more memory than a launch may take"); });
}

}  // namespace acu::runtime::emulation
