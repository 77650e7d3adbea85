#pragma once
#include <chrono>
#include <string>
#include <vector>

namespace acu::runtime {

/// A program to run as a child: an argument vector (no shell takes part), standard input from /dev/null.
struct ProcessRequest {
    std::vector<std::string> arguments;  ///< the first is the program: a path, or a name that PATH finds
    std::string folder;                  ///< working directory; empty for ours
    std::chrono::milliseconds limit{60'000};
    std::vector<std::string> variables = {};  ///< "NAME=value": set for the child, on top of our environment
    size_t output_limit = size_t{1} << 20;    ///< more output is read and dropped
};

/// How the child ended. Exactly one of these holds: it did not start, it timed out, a signal ended it, it exited.
struct ProcessResult {
    std::string failure;     ///< why it did not start
    bool timed_out = false;  ///< it was killed, with its children, at the time limit
    int signal = 0;
    int exit_code = -1;
    std::string output;  ///< standard output and error, in the order of writing
    bool good() const { return exit_code == 0; }
    std::string explain() const;  ///< "exited with 2", "was killed after 60 s", …
};

/// Runs the program and waits. The child leads a process group of its own, which is killed when the child ends: nothing stays behind.
ProcessResult run_process(const ProcessRequest& request);

}  // namespace acu::runtime
