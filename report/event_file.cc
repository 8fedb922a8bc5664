#include "parsimony/report/event_file.h"

#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <climits>
#include <filesystem>
#include <string_view>
#include <system_error>

#include "parsimony/base/errors.h"
#include "parsimony/base/hash.h"

namespace parsimony {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kVersion = "brain.Event:2";

double seconds_since_1970() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

std::string host_name() {
  std::array<char, HOST_NAME_MAX + 1> name{};
  return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "localhost";
}

template <typename Number>
std::string little_endian(Number number) {
  return {reinterpret_cast<const char*>(&number), sizeof number};
}

// Protobuf's encoding of a field, by the type of its value. Generated code would be in the command
// and in its component, and libprotobuf aborts if a process registers a message twice.

std::string varint(uint64_t value) {
  std::string bytes;
  for (; value >= 128; value >>= 7) bytes += static_cast<char>(value | 128);
  return bytes + static_cast<char>(value);
}

std::string field(uint64_t number, int64_t value) {
  return varint(number << 3) + varint(static_cast<uint64_t>(value));
}
std::string field(uint64_t number, double value) {
  return varint(number << 3 | 1) + little_endian(value);
}
std::string field(uint64_t number, std::string_view bytes) {
  return varint(number << 3 | 2) + varint(bytes.size()) + std::string(bytes);
}
std::string field(uint64_t number, float value) {
  return varint(number << 3 | 5) + little_endian(value);
}

/// Masks a checksum, so that checksums of data with checksums are not degenerate.
uint32_t masked(uint32_t sum) { return ((sum >> 15) | (sum << 17)) + 0xa282ead8; }

std::string with_sum(const std::string& bytes) {
  return bytes + little_endian(masked(crc32c(bytes)));
}

}  // namespace

EventFile::EventFile(const std::string& folder) : file_(nullptr, &std::fclose) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) throw errors::cannot_write(folder, error.value());
  for (auto second = static_cast<int64_t>(seconds_since_1970()); !file_; ++second) {
    const std::string name = "events.out.tfevents." + std::to_string(second) + "." + host_name();
    path_ = (fs::path(folder) / name).string();
    file_.reset(std::fopen(path_.c_str(), "wxe"));
    if (!file_ && errno != EEXIST) throw errors::cannot_write(path_, errno);
  }
  append(field(1, seconds_since_1970()) + field(3, kVersion));
}

// message Event   { double wall_time = 1; int64 step = 2; string file_version = 3;
//                   Summary summary = 5; }
// message Summary { message Value { string tag = 1; float simple_value = 2; }
//                   repeated Value value = 1; }
void EventFile::add(int64_t step, const std::vector<Scalar>& scalars) {
  std::string summary;
  for (const Scalar& scalar : scalars) {
    summary += field(1, field(1, scalar.tag) + field(2, static_cast<float>(scalar.value)));
  }
  append(field(1, seconds_since_1970()) + field(2, step) + field(5, summary));
}

void EventFile::append(const std::string& event) {
  const std::string record = with_sum(little_endian(uint64_t{event.size()})) + with_sum(event);
  if (std::fwrite(record.data(), 1, record.size(), file_.get()) != record.size() ||
      std::fflush(file_.get()) != 0) {
    throw errors::cannot_write(path_, errno);
  }
}

}  // namespace parsimony
