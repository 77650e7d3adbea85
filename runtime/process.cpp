#include "runtime/process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string_view>

extern char** environ;

namespace acu::runtime {

using Clock = std::chrono::steady_clock;

namespace {

/// Where the child's output comes from; closed at the end.
struct Pipe {
    std::array<int, 2> ends{-1, -1};
    bool open() { return pipe2(ends.data(), O_CLOEXEC) == 0; }
    void close_end(size_t end) {
        if (ends[end] >= 0) ::close(ends[end]);
        ends[end] = -1;
    }
    ~Pipe() { close_end(0), close_end(1); }
};

/// As C wants it: pointers, and a null at the end.
std::vector<char*> pointers(const std::vector<std::string>& texts) {
    std::vector<char*> out;
    for (const std::string& text : texts) out.push_back(const_cast<char*>(text.c_str()));
    out.push_back(nullptr);
    return out;
}

bool replaced(std::string_view variable, const std::vector<std::string>& by) {
    const std::string_view name = variable.substr(0, variable.find('=') + 1);
    return std::any_of(by.begin(), by.end(), [&](const std::string& other) { return other.starts_with(name); });
}

/// What posix_spawn is told: output into the pipe, no input, its own process group, default signals.
class SpawnSetup {
  public:
    SpawnSetup(const ProcessRequest& request, int output) {
        posix_spawn_file_actions_init(&actions_);
        posix_spawn_file_actions_addopen(&actions_, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
        posix_spawn_file_actions_adddup2(&actions_, output, STDOUT_FILENO);
        posix_spawn_file_actions_adddup2(&actions_, output, STDERR_FILENO);
        if (!request.folder.empty()) posix_spawn_file_actions_addchdir_np(&actions_, request.folder.c_str());
        posix_spawnattr_init(&attributes_);
        posix_spawnattr_setpgroup(&attributes_, 0);
        sigset_t none, all;
        sigemptyset(&none);
        sigfillset(&all);
        posix_spawnattr_setsigmask(&attributes_, &none);
        posix_spawnattr_setsigdefault(&attributes_, &all);
        posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    }
    SpawnSetup(const SpawnSetup&) = delete;
    ~SpawnSetup() {
        posix_spawn_file_actions_destroy(&actions_);
        posix_spawnattr_destroy(&attributes_);
    }
    int spawn(pid_t& child, const ProcessRequest& request) const {
        std::vector<char*> argv = pointers(request.arguments);
        std::vector<char*> environment = pointers(request.variables);
        environment.pop_back();
        for (char** variable = environ; *variable; ++variable)
            if (!replaced(*variable, request.variables)) environment.push_back(*variable);
        environment.push_back(nullptr);
        return posix_spawnp(&child, argv[0], &actions_, &attributes_, argv.data(), environment.data());
    }

  private:
    posix_spawn_file_actions_t actions_;
    posix_spawnattr_t attributes_;
};

/// Reads what is there without waiting, at most 1 MiB (a child that never stops writing must not hold us). False at the end.
bool drain(int from, std::string& output, size_t limit) {
    std::array<char, 65536> piece;
    for (int pieces = 0; pieces < 16; ++pieces) {
        const ssize_t got = read(from, piece.data(), piece.size());
        if (got == 0) return false;
        if (got < 0) return errno == EAGAIN || errno == EINTR;
        const size_t room = limit - std::min(limit, output.size());
        output.append(piece.data(), std::min(room, static_cast<size_t>(got)));
    }
    return true;
}

/// Whether the child has ended. It stays a zombie, so that its process id (and group) is still ours.
bool ended(pid_t child) {
    siginfo_t info{};
    return waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == child;
}

/// Follows the child until it ends (true) or the time is over (false). Short waits: a grandchild may hold the pipe open for ever.
bool follow(pid_t child, int from, const ProcessRequest& request, std::string& output) {
    const auto end = Clock::now() + request.limit;
    for (bool more = true; !ended(child);) {
        if (Clock::now() >= end) return false;
        pollfd source{more ? from : -1, POLLIN, 0};
        poll(&source, 1, 5);
        if (more) more = drain(from, output, request.output_limit);
    }
    return true;
}

void reap(pid_t child, ProcessResult& result) {
    kill(-child, SIGKILL);
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    if (result.timed_out) return;
    if (WIFEXITED(status)) result.exit_code = WEXITSTATUS(status);
    if (WIFSIGNALED(status)) result.signal = WTERMSIG(status);
}

}  // namespace

std::string ProcessResult::explain() const {
    if (!failure.empty()) return fmt::format("did not start: {}", failure);
    if (timed_out) return "was killed at its time limit";
    if (signal) return fmt::format("ended by signal {} ({})", signal, strsignal(signal));
    return fmt::format("exited with {}", exit_code);
}

ProcessResult run_process(const ProcessRequest& request) {
    ProcessResult result;
    Pipe pipe;
    if (request.arguments.empty()) return result.failure = "no program named", result;
    if (!pipe.open()) return result.failure = std::strerror(errno), result;
    fcntl(pipe.ends[0], F_SETFL, O_NONBLOCK);
    pid_t child = -1;
    if (const int error = SpawnSetup(request, pipe.ends[1]).spawn(child, request))
        return result.failure = fmt::format("{}: {}", request.arguments[0], std::strerror(error)), result;
    pipe.close_end(1);
    result.timed_out = !follow(child, pipe.ends[0], request, result.output);
    drain(pipe.ends[0], result.output, request.output_limit);
    reap(child, result);
    return result;
}

}  // namespace acu::runtime
