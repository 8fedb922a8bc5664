#include "parsimony/training/sweep/claim.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "parsimony/base/errors.h"

namespace parsimony::training {
namespace {

/// Is this still the file of that name? Its owner may have removed it before we had the lock.
bool is_file(int descriptor, const std::string& path) {
  struct stat own {};
  struct stat named {};
  return fstat(descriptor, &own) == 0 && stat(path.c_str(), &named) == 0 &&
         own.st_ino == named.st_ino && own.st_dev == named.st_dev;
}

/// False if another process has the lock and is not to be waited for.
bool lock_file(int descriptor, const std::string& path, Claim::IfTaken if_taken) {
  const bool wait = if_taken == Claim::IfTaken::kWait;
  while (flock(descriptor, wait ? LOCK_EX : LOCK_EX | LOCK_NB) != 0) {
    if (errno == EWOULDBLOCK) return false;
    if (errno != EINTR) throw parsimony::errors::cannot_write(path, errno);
  }
  return true;
}

}  // namespace

Claim::Claim(std::string path, IfTaken if_taken) : path_(std::move(path)) {
  while (true) {
    const int descriptor = open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (descriptor < 0) throw parsimony::errors::cannot_write(path_, errno);
    const bool locked = lock_file(descriptor, path_, if_taken);
    if (locked && is_file(descriptor, path_)) {
      descriptor_ = descriptor;
      return;
    }
    close(descriptor);
    if (!locked) return;
  }
}

Claim::~Claim() {
  if (!held()) return;
  unlink(path_.c_str());
  close(descriptor_);
}

}  // namespace parsimony::training
