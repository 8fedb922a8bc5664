#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "parsimony/base/hash.h"
#include "parsimony/onnx_io/errors.h"
#include "parsimony/onnx_io/file_impl.h"

namespace parsimony::onnx_io {
namespace {

constexpr size_t kChunk = size_t{1} << 20;
constexpr int kMaxTemporaries = 100;

std::string text_of(int error_number) { return std::generic_category().message(error_number); }

/// Resolves links: the target of a link is replaced, not the link.
std::string resolved(const std::string& path) {
  std::error_code ignored;
  if (!std::filesystem::is_symlink(path, ignored)) return path;
  const std::filesystem::path target = std::filesystem::canonical(path, ignored);
  return ignored ? path : target.string();
}

}  // namespace

FileDescriptor::~FileDescriptor() {
  if (fd_ >= 0) ::close(fd_);
}

FileDescriptor& FileDescriptor::operator=(FileDescriptor&& other) noexcept {
  if (this != &other) {
    if (fd_ >= 0) ::close(fd_);
    fd_ = other.release();
  }
  return *this;
}

int FileDescriptor::release() { return std::exchange(fd_, -1); }

OpenFile open_for_reading(const std::string& path) {
  OpenFile file;
  // Without O_NONBLOCK, opening a pipe would wait for its writer.
  file.fd = FileDescriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.fd.get() < 0) throw errors::cannot_read(path, text_of(errno));
  struct stat status {};
  if (::fstat(file.fd.get(), &status) != 0) throw errors::cannot_read(path, text_of(errno));
  if (!S_ISREG(status.st_mode)) throw errors::cannot_read(path, "not a regular file");
  file.size = status.st_size;
  file.device = status.st_dev;
  file.inode = status.st_ino;
  return file;
}

size_t read_at(const OpenFile& file, const std::string& path, int64_t offset,
               std::span<std::byte> buffer) {
  size_t done = 0;
  while (done < buffer.size()) {
    const ssize_t got = ::pread(file.fd.get(), buffer.data() + done, buffer.size() - done,
                                static_cast<off_t>(offset) + static_cast<off_t>(done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw errors::cannot_read(path, text_of(errno));
    if (got == 0) break;
    done += got;
  }
  return done;
}

OutputFile::OutputFile(const std::string& path) : path_(resolved(path)) {
  struct stat status {};
  if (::stat(path_.c_str(), &status) == 0 && !S_ISREG(status.st_mode)) {
    throw errors::cannot_write(path_, "not a regular file");
  }
  for (int i = 0; i < kMaxTemporaries && fd_.get() < 0; ++i) {
    temporary_ = path_ + ".tmp" + std::to_string(::getpid()) + "-" + std::to_string(i);
    fd_ = FileDescriptor(::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
    if (fd_.get() < 0 && errno != EEXIST) break;
  }
  if (fd_.get() < 0) fail(errno);
}

OutputFile::~OutputFile() {
  if (!committed_) ::unlink(temporary_.c_str());
}

void OutputFile::write(const std::byte* data, int64_t bytes) {
  while (bytes > 0) {
    const ssize_t put = ::write(fd_.get(), data, bytes);
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) fail(errno);
    data += put;
    bytes -= put;
    position_ += put;
  }
}

void OutputFile::align(int64_t alignment) {
  constexpr std::array<std::byte, 64> kZeros{};
  int64_t missing = (alignment - position_ % alignment) % alignment;
  while (missing > 0) {
    const int64_t part = std::min<int64_t>(missing, kZeros.size());
    write(kZeros.data(), part);
    missing -= part;
  }
}

void OutputFile::copy_from(const OpenFile& source, const std::string& source_path) {
  std::vector<std::byte> buffer(kChunk);
  int64_t offset = 0;
  while (const size_t got = read_at(source, source_path, offset, buffer)) {
    write(buffer.data(), static_cast<int64_t>(got));
    offset += static_cast<int64_t>(got);
  }
}

void OutputFile::close() {
  if (fd_.get() < 0) return;
  if (::close(fd_.release()) != 0) fail(errno);
}

void OutputFile::commit() {
  close();
  if (std::rename(temporary_.c_str(), path_.c_str()) != 0) fail(errno);
  committed_ = true;
}

void OutputFile::fail(int error_number) const {
  throw errors::cannot_write(path_, text_of(error_number));
}

std::string sha256_of(const OpenFile& file, const std::string& path) {
  constexpr size_t kChunk = size_t{1} << 20;
  Sha256 sum;
  std::vector<std::byte> buffer(kChunk);
  int64_t offset = 0;
  while (const size_t got = read_at(file, path, offset, buffer)) {
    sum.add(std::span(buffer).first(got));
    offset += static_cast<int64_t>(got);
  }
  return sum.hex();
}

}  // namespace parsimony::onnx_io
