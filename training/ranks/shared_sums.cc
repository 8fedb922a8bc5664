#include "parsimony/training/ranks/shared_sums.h"

#include <ATen/ATen.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <torch/csrc/distributed/c10d/Store.hpp>
#include <utility>
#include <vector>

#include "parsimony/base/errors.h"

namespace parsimony::training {
namespace {

using std::chrono::steady_clock;

/// Of a sum that is made at once.
constexpr int64_t kPartBytes = int64_t{128} << 10;
/// Each rank reads what all have: many ranks are faster by messages, but for small sums.
constexpr int kFewRanks = 8;
constexpr int64_t kSmallBytes = int64_t{32} << 10;

/// Removes a file in memory at the end of the scope; all but the first to do so find it gone.
struct Removed {
  explicit Removed(const std::string& name) : name_(name) {}
  ~Removed() { shm_unlink(name_.c_str()); }
  Removed(const Removed&) = delete;
  Removed& operator=(const Removed&) = delete;

 private:
  const std::string& name_;
};

}  // namespace

/// What a rank adds, of two parts in turn: nobody is behind by more than one.
struct alignas(64) SharedSums::Slot {
  std::atomic<uint64_t> round;
  std::array<int64_t, 2> bytes;
  alignas(64) std::array<std::array<std::byte, kPartBytes>, 2> values;
};

/// A file in memory with a slot for each rank. A rank that is alive holds the lock of the byte that
/// has its number.
struct SharedSums::File {
  /// @param name  removed again by the caller; @returns null if it cannot be used
  static std::unique_ptr<File> open(const std::string& name, int rank, int size, bool creates) {
    const int flags = O_RDWR | (creates ? O_CREAT | O_EXCL : 0);
    auto file = std::make_unique<File>();
    file->descriptor = shm_open(name.c_str(), flags, 0600);
    if (file->descriptor < 0) return nullptr;
    file->bytes = static_cast<size_t>(size) * sizeof(Slot);
    // A file that has no pages yet would end the process if memory ran out.
    const auto end = static_cast<off_t>(file->bytes);
    if (creates && posix_fallocate(file->descriptor, 0, end) != 0) return nullptr;
    void* const begin =
        mmap(nullptr, file->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file->descriptor, 0);
    if (begin == MAP_FAILED) return nullptr;
    file->slots = static_cast<Slot*>(begin);
    struct flock own = lock_of(rank);
    if (fcntl(file->descriptor, F_OFD_SETLK, &own) != 0) return nullptr;
    return file;
  }

  File() = default;
  ~File() {
    if (slots != nullptr) munmap(slots, bytes);
    if (descriptor >= 0) close(descriptor);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  bool is_alive(int rank) const {
    struct flock lock = lock_of(rank);
    return fcntl(descriptor, F_OFD_GETLK, &lock) != 0 || lock.l_type != F_UNLCK;
  }

  static struct flock lock_of(int rank) {
    struct flock lock = {};
    lock.l_type = F_WRLCK;
    lock.l_whence = SEEK_SET;
    lock.l_start = rank;
    lock.l_len = 1;
    return lock;
  }

  int descriptor = -1;
  size_t bytes = 0;
  Slot* slots = nullptr;
};

std::unique_ptr<SharedSums> SharedSums::of(c10d::Store& store, int rank, int size,
                                           std::chrono::milliseconds timeout) {
  const auto bytes_of = [](const std::string& text) {
    return std::vector<uint8_t>(text.begin(), text.end());
  };
  const std::string key = "shared-sums";
  std::string name;
  const Removed removed{name};  // once all have opened it, or one is lost
  std::unique_ptr<File> file;
  if (rank == 0) {
    name = "/parsimony-" + std::to_string(getpid()) + "-" + std::to_string(std::random_device()());
    file = File::open(name, rank, size, /*creates=*/true);
    store.set(key, bytes_of(name));
  } else {
    const std::vector<uint8_t> given = store.get(key);
    name.assign(given.begin(), given.end());
    file = File::open(name, rank, size, /*creates=*/false);
  }
  store.set(key + std::to_string(rank), bytes_of(file ? "shared" : "not shared"));
  bool all = true;
  for (int other = 0; other < size; ++other) {
    all = store.get(key + std::to_string(other)) == bytes_of("shared") && all;
  }
  if (!all) return nullptr;
  return std::unique_ptr<SharedSums>(new SharedSums(std::move(file), rank, size, timeout));
}

SharedSums::SharedSums(std::unique_ptr<File> file, int rank, int size,
                       std::chrono::milliseconds timeout)
    : file_(std::move(file)), rank_(rank), size_(size), timeout_(timeout) {}

SharedSums::~SharedSums() = default;

bool SharedSums::takes(const at::Tensor& tensor) const {
  const bool suits = size_ <= kFewRanks || tensor.nbytes() <= static_cast<size_t>(kSmallBytes);
  return suits && tensor.device().is_cpu() && tensor.layout() == at::kStrided &&
         tensor.is_contiguous() && tensor.scalar_type() != at::kBool && tensor.numel() > 0;
}

void SharedSums::sum(const at::Tensor& tensor) {
  const at::Tensor all = tensor.view(-1);
  const int64_t most = kPartBytes / all.element_size();
  for (int64_t begin = 0; begin < all.numel(); begin += most) {
    sum_part(all.narrow(0, begin, std::min(most, all.numel() - begin)));
  }
}

void SharedSums::sum_part(const at::Tensor& part) {
  const size_t half = ++round_ % 2;
  Slot& own = file_->slots[rank_];
  own.bytes[half] = static_cast<int64_t>(part.nbytes());
  std::memcpy(own.values[half].data(), part.data_ptr(), part.nbytes());
  own.round.store(round_, std::memory_order_release);
  const auto of = [&](int rank) {
    wait_for(rank);
    Slot& slot = file_->slots[rank];
    if (slot.bytes[half] != own.bytes[half]) {
      throw ConfigError("ranks sum tensors of different sizes");
    }
    return at::from_blob(slot.values[half].data(), part.sizes(), part.options());
  };
  at::Tensor sum = part;
  at::add_out(sum, of(0), of(1));
  for (int rank = 2; rank < size_; ++rank) sum.add_(of(rank));
}

/// Asks again and again, as ranks that train alike are apart by less than it takes to wake up.
void SharedSums::wait_for(int other) const {
  constexpr std::chrono::milliseconds kAwake{2};
  constexpr std::chrono::microseconds kAsleep{200};
  constexpr int kChecks = 64;  // between questions whether it is alive
  const std::atomic<uint64_t>& round = file_->slots[other].round;
  const auto arrived = [&] { return round.load(std::memory_order_acquire) >= round_; };
  const auto begin = steady_clock::now();
  for (int64_t i = 1; !arrived(); ++i) {
    const auto waited = steady_clock::now() - begin;
    if (waited < kAwake) {
      std::this_thread::yield();
      continue;
    }
    if (i % kChecks == 0 && !file_->is_alive(other) && !arrived()) {
      throw std::runtime_error("shared memory: rank " + std::to_string(other) + " has ended");
    }
    if (waited > timeout_) throw std::runtime_error("shared memory: timed out");
    std::this_thread::sleep_for(kAsleep);
  }
}

}  // namespace parsimony::training
