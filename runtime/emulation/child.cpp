#include "runtime/emulation/child.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <sstream>
#include <thread>

#include "runtime/emulation/text.h"

namespace acu::runtime::emulation {

namespace {

/// The page in which the child writes how it went.
class SharedFinding {
  public:
    SharedFinding() {
        void* p = mmap(nullptr, sizeof(Finding), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        finding_ = p == MAP_FAILED ? nullptr : static_cast<Finding*>(p);
    }
    ~SharedFinding() {
        if (finding_) munmap(finding_, sizeof(Finding));
    }
    SharedFinding(const SharedFinding&) = delete;
    Finding* get() { return finding_; }

  private:
    Finding* finding_;
};

/// Address space of this process: what the child starts with.
uint64_t address_space() {
    uint64_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    return pages * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

void limit(int what, uint64_t value) {
    const rlimit l{value, value};
    setrlimit(static_cast<decltype(RLIMIT_CPU)>(what), &l);
}

[[noreturn]] void be_child(const Job& job, Finding& finding, pid_t parent) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(1);
    // shadow cells take six times the buffers' address space, of which a page costs memory only when it is touched
    const uint64_t shadow = 8 * (job.memory->end() + global_start);
    if (const uint64_t now = address_space()) limit(RLIMIT_AS, now + shadow + job.options.memory);
    limit(RLIMIT_CPU, job.options.seconds);
    limit(RLIMIT_CORE, 0);
    run_job(job, finding);
}

/// Waits for the child; kills it when it takes ten times its processor time.
int wait_for(pid_t child, unsigned seconds) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10 * uint64_t{seconds});
    int status = 0;
    auto pause = std::chrono::microseconds(200);
    for (;;) {
        const pid_t got = waitpid(child, &status, WNOHANG);
        if (got == child) return status;
        if (got < 0 && errno != EINTR) return SIGKILL;
        if (std::chrono::steady_clock::now() > end) kill(child, SIGKILL);
        std::this_thread::sleep_for(pause);
        pause = std::min(pause * 3 / 2, std::chrono::microseconds(5000));
    }
}

void add_lines(Diagnostic& d, const std::string& lines) {
    std::istringstream in(lines);
    for (std::string line; std::getline(in, line);) d.notes.push_back({{}, line});
}

std::string help_for(const std::string& code) {
    if (code == "emu.race") return "a barrier between the two accesses is missing, or it does not stop all of the threads";
    if (code == "emu.missing-wait") return "wait for the copy (cp.async.wait_group, an mbarrier) or the product (wgmma.wait_group) first";
    if (code == "emu.divergent-barrier") return "every thread of the block must come to the same barrier";
    if (code == "emu.lane-mask") return "a mask of 32 lanes is not enough for a wave of 64";
    return "";
}

Diagnostic from_finding(const Finding& f, const std::string& kernel, const std::string& text) {
    Diagnostic d{.code = f.code, .message = fmt::format("`{}` {}", kernel, f.message), .help = help_for(f.code), .exit = Exit::Wrong};
    if (*f.where) d.message += fmt::format(": {}", f.where);
    if (*f.thread) d.message += fmt::format(" ({})", f.thread);
    const std::string line = line_of(text, f.line);
    if (!line.empty()) d.notes.push_back({{}, fmt::format("line {} is: {}", f.line, line)});
    if (const std::string from = provenance_of(line); !from.empty()) d.notes.push_back({{}, "it comes from " + from});
    add_lines(d, f.more);
    return d;
}

Diagnostic from_end(int status, const Job& job, const std::string& kernel) {
    if (WIFSIGNALED(status) && (WTERMSIG(status) == SIGXCPU || WTERMSIG(status) == SIGKILL))
        return {.code = "emu.timeout", .message = fmt::format("`{}` did not end in {} s of processor time", kernel, job.options.seconds), .help = "it may never end; or choose smaller sizes", .exit = Exit::Wrong};
    const std::string how = WIFSIGNALED(status) ? fmt::format("signal {} ({})", WTERMSIG(status), strsignal(WTERMSIG(status))) : fmt::format("exit code {}", WEXITSTATUS(status));
    return {.code = "emu.crash", .message = fmt::format("the emulation of `{}` ended by {}", kernel, how), .exit = Exit::Wrong};
}

}  // namespace

Status run_in_child(const Job& job, const std::string& kernel, const std::string& text) {
    SharedFinding shared;
    if (!shared.get()) return Diagnostic{.code = "device.memory", .message = "no memory for a child process", .exit = Exit::Lacking};
    std::fflush(nullptr);
    const pid_t parent = getpid(), child = fork();
    if (child < 0) return Diagnostic{.code = "device.memory", .message = fmt::format("cannot start a child process: {}", std::strerror(errno)), .exit = Exit::Lacking};
    if (child == 0) be_child(job, *shared.get(), parent);
    const int status = wait_for(child, job.options.seconds);
    const Finding& f = *shared.get();
    if (f.state == Finding::Found) return from_finding(f, kernel, text);
    return f.state == Finding::Done ? ok() : Status(from_end(status, job, kernel));
}

}  // namespace acu::runtime::emulation
