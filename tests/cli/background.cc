#include "tests/cli/background.h"

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <thread>
#include <vector>

extern char** environ;  // NOLINT(readability-redundant-declaration): POSIX does not declare it

namespace parsimony::test {
namespace {

void pause() { std::this_thread::sleep_for(std::chrono::milliseconds(2)); }

/// The group that a process is of, and whether it is more than an entry that waits for its parent.
bool lives_in(const std::string& process, pid_t group) {
  std::ifstream file("/proc/" + process + "/stat");
  std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  const size_t name_end = text.rfind(')');
  if (name_end == std::string::npos) return false;
  std::istringstream rest(text.substr(name_end + 1));
  char state = 0;
  pid_t parent = 0;
  pid_t own_group = 0;
  rest >> state >> parent >> own_group;
  return own_group == group && state != 'Z' && state != 'X';
}

}  // namespace

Background::Background(const Workplace& place, const std::string& arguments,
                       const std::string& variables)
    : place_(place) {
  place.write("said", "");
  std::vector<std::string> words = {"/bin/sh", "-c",
                                    "cd '" + place / "" + "' && exec env " + variables +
                                        " '" PARSIMONY_BINARY "' " + arguments +
                                        " >printed 2>said"};
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  posix_spawnattr_setpgroup(&attributes, 0);
  const int error = posix_spawn(&pid_, argv[0], nullptr, &attributes, argv.data(), environ);
  posix_spawnattr_destroy(&attributes);
  if (error != 0) throw std::runtime_error("the command cannot be started");
}

Background::~Background() { kill_all(); }

bool Background::ended() {
  if (!reaped_) reaped_ = waitpid(pid_, &status_, WNOHANG) == pid_;
  return reaped_;
}

bool Background::says(const std::string& text, int lines) {
  while (!ended()) {
    std::istringstream said(place_.bytes("said"));
    int found = 0;
    for (std::string line; std::getline(said, line);) {
      if (line.find(text) != std::string::npos) ++found;
    }
    if (found >= lines) return true;
    pause();
  }
  return false;
}

void Background::kill(int signal) {
  if (!reaped_) ::kill(pid_, signal);
  wait();
}

void Background::kill_all() {
  ::kill(-pid_, SIGKILL);
  wait();
  while (group_lives()) pause();
}

bool Background::group_lives() const {
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const std::string name = entry.path().filename().string();
    if (name.find_first_not_of("0123456789") == std::string::npos && lives_in(name, pid_)) {
      return true;
    }
  }
  return false;
}

int Background::wait() {
  while (!reaped_) {
    const pid_t got = waitpid(pid_, &status_, 0);
    if (got == pid_ || (got < 0 && errno != EINTR)) reaped_ = true;
  }
  return WIFEXITED(status_) ? WEXITSTATUS(status_) : -1;
}

}  // namespace parsimony::test
