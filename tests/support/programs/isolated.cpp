#include "tests/support/programs/isolated.h"

#include <fmt/core.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdio>
#include <exception>

#include "ir/support/error.h"

namespace lathe::test {

namespace {

std::string answer(const std::function<std::optional<std::string>()>& check) {
  try {
    return check().value_or("");
  } catch (const UserError& error) {
    return fmt::format("UserError: {}", error.what());
  } catch (const InternalError& error) {
    return fmt::format("InternalError: {}", error.what());
  } catch (const std::exception& error) {
    return fmt::format("exception: {}", error.what());
  }
}

void write_all(int to, const std::string& text) {
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t count = ::write(to, text.data() + done, text.size() - done);
    if (count <= 0) return;
    done += static_cast<std::size_t>(count);
  }
}

constexpr unsigned timeout = 20;  // wall time limit relative to the CPU time limit, because the machine is shared

/// Terminates this process after `seconds` of CPU time, or of a much longer wait.
void limit_time(unsigned seconds) {
  const rlimit limit{seconds, seconds + 5};
  ::setrlimit(RLIMIT_CPU, &limit);
  ::alarm(timeout * seconds);
}

std::string death(int signal, unsigned seconds) {
  if (signal == SIGXCPU) return fmt::format("is not done after {} s of processor time", seconds);
  if (signal == SIGALRM) return fmt::format("is not done after {} s", timeout * seconds);
  return fmt::format("crashes with signal {}", signal);
}

}  // namespace

std::optional<std::string> isolated(const std::function<std::optional<std::string>()>& check, unsigned seconds) {
  std::array<int, 2> ends{};
  if (::pipe(ends.data()) != 0) throw InternalError("no pipe");
  std::fflush(stdout);
  const pid_t child = ::fork();
  if (child < 0) throw InternalError("no process");
  if (child == 0) {
    ::close(ends[0]);
    limit_time(seconds);
    write_all(ends[1], answer(check));
    ::_exit(0);
  }
  ::close(ends[1]);
  std::string text;
  std::array<char, 4096> block{};
  for (ssize_t count = 0; (count = ::read(ends[0], block.data(), block.size())) > 0;)
    text.append(block.data(), static_cast<std::size_t>(count));
  ::close(ends[0]);
  int status = 0;
  ::waitpid(child, &status, 0);
  if (WIFSIGNALED(status)) return death(WTERMSIG(status), seconds);
  if (WEXITSTATUS(status) != 0) return fmt::format("the process ends with {}", WEXITSTATUS(status));
  return text.empty() ? std::nullopt : std::optional(text);
}

std::string kind_of(const std::string& complaint) {
  for (const char* marker : {"InternalError", "UserError", "exception", "crashes", "is not done", "the process ends",
                             "ends with", "other bits", "prints differently", "changes its own result"})
    if (const auto at = complaint.find(marker); at != std::string::npos) {
      std::string kind = complaint.substr(at, std::min<std::size_t>(100, complaint.find('%', at) - at));
      std::erase_if(kind, [](char c) { return c >= '0' && c <= '9'; });
      return kind;
    }
  return "wrong";
}

}  // namespace lathe::test
