#include "parsimony/training/ranks/group.h"

#include <ATen/ATen.h>
#include <torch/version.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <thread>
#include <torch/csrc/distributed/c10d/FileStore.hpp>
#include <torch/csrc/distributed/c10d/HashStore.hpp>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>
#include <torch/csrc/distributed/c10d/comm.hpp>

#include "parsimony/base/hash.h"
#include "parsimony/base/parse.h"
#include "parsimony/torch_io/reason.h"

namespace parsimony::training {
namespace {

std::chrono::milliseconds time_of(double seconds) {
  return std::chrono::milliseconds(static_cast<int64_t>(seconds * 1000));
}

bool is_here(const std::string& host) {
  return host.empty() || host == "localhost" || host.starts_with("127.");
}

/// Returns an id of this start, as set by launchers, the same on all ranks, which distinguishes
/// jobs at the same place.
std::string start_of_job() {
  std::string text;
  for (const char* name : {"TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT", "SLURM_JOB_ID",
                           "SLURM_STEP_ID", "SLURM_RESTART_COUNT", "PMIX_NAMESPACE"}) {
    const char* value = std::getenv(name);
    if (value != nullptr) text += std::string(".") + value;
  }
  std::ranges::replace(text, '/', '-');
  return text;
}

struct Meeting {
  c10::intrusive_ptr<c10d::Store> store;
  bool within_machine = false;
};

Meeting meeting_of(const RankPlace& place) {
  if (!place.several()) return {c10::make_intrusive<c10d::HashStore>(), true};
  const std::string& text = place.store;
  if (text.starts_with("file:") && text.size() > 5) {
    const auto store =
        c10::make_intrusive<c10d::FileStore>(text.substr(5) + start_of_job(), place.size);
    store->setTimeout(time_of(place.settings.timeout));
    return {store, place.local_size == place.size};
  }
  const size_t colon = text.rfind(':');
  const auto port = colon == std::string::npos || !text.starts_with("tcp:") || colon <= 4
                        ? std::nullopt
                        : number_of<uint16_t>(std::string_view(text).substr(colon + 1));
  if (!port) {
    throw ConfigError("store ", in_quotes(text),
                      ": expected tcp:HOST:PORT, or file:PATH in a folder that all ranks see");
  }
  const std::string host = text.substr(4, colon - 4);
  c10d::TCPStoreOptions options;
  options.port = *port;
  options.isServer = place.rank == 0 && !place.store_is_open;
  options.numWorkers = static_cast<size_t>(place.size);
  options.timeout = time_of(place.settings.timeout);
  const auto store = c10::make_intrusive<c10d::TCPStore>(host, options);
  return {c10::make_intrusive<c10d::PrefixStore>("parsimony" + start_of_job(), store),
          is_here(host)};
}

/// Uses the interface in GLOO_SOCKET_IFNAME; otherwise ranks of one machine use the loopback.
std::shared_ptr<::gloo::transport::Device> device_for(bool within_machine) {
  const char* interface = std::getenv("GLOO_SOCKET_IFNAME");
  if (interface != nullptr && *interface != '\0') {
    return c10d::ProcessGroupGloo::createDeviceForInterface(interface);
  }
  return within_machine ? c10d::ProcessGroupGloo::createDeviceForHostname("127.0.0.1")
                        : c10d::ProcessGroupGloo::createDefaultDevice();
}

c10::intrusive_ptr<c10d::ProcessGroup> gloo_group(
    const c10::intrusive_ptr<c10d::Store>& store, const RankPlace& place,
    const std::shared_ptr<::gloo::transport::Device>& device) {
  const auto options = c10d::ProcessGroupGloo::Options::create(time_of(place.settings.timeout));
  options->devices.push_back(device);
  options->threads = 2;
  const auto gloo =
      c10::make_intrusive<c10d::ProcessGroupGloo>(store, place.rank, place.size, options);
  const auto group = c10::make_intrusive<c10d::ProcessGroup>(store, place.rank, place.size);
  group->setBackend(c10::kCPU, c10d::ProcessGroup::BackendType::GLOO, gloo);
  group->setDefaultBackend(c10d::ProcessGroup::BackendType::GLOO);
  return group;
}

}  // namespace

template <typename Work>
void RankGroup::collective(std::string_view what, const Work& work) const {
  try {
    work();
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {
    throw lost(what, torch_io::reason_of(error));
  }
}

IoError RankGroup::lost(std::string_view what, const std::string& why) const {
  constexpr std::chrono::seconds kOthersNotice{2};
  std::vector<int> missing;
  try {
    if (store_ && group_) {
      store_->set("left" + std::to_string(rank()), std::vector<uint8_t>{1});
      std::this_thread::sleep_for(kOthersNotice);
    }
    const std::string key = group_ ? "left" : "here";
    for (int other = 0; store_ && other < size(); ++other) {
      if (!store_->check({key + std::to_string(other)})) missing.push_back(other);
    }
  } catch (const std::exception&) {
    if (!place_.store_is_open) missing = {0};  // where the store is
  }
  char host[256] = "";
  gethostname(host, sizeof host - 1);
  std::string who;
  for (const int other : missing) who += (who.empty() ? "rank " : ", ") + std::to_string(other);
  return IoError("rank ", place_.rank, " of ", place_.size, " on ", host, ", ", what, ": ",
                 who.empty() ? "another rank" : who, " is lost or did not arrive in time: ", why);
}

RankGroup::RankGroup(const RankPlace& place) : place_(place) {
  collective("meeting the others", [&] {
    const Meeting meeting = meeting_of(place_);
    meet(meeting.store, meeting.within_machine);
  });
}

RankGroup::RankGroup(const c10::intrusive_ptr<c10d::Store>& store, const RankPlace& place,
                     bool shares_memory)
    : place_(place) {
  collective("meeting the others", [&] { meet(store, true, shares_memory); });
}

void RankGroup::meet(const c10::intrusive_ptr<c10d::Store>& store, bool within_machine,
                     bool shares_memory) {
  store_ = store;
  store->set("here" + std::to_string(rank()), std::vector<uint8_t>{1});
  std::vector<std::string> all;
  for (int other = 0; other < size(); ++other) all.push_back("here" + std::to_string(other));
  store->wait(all, time_of(place_.settings.timeout));  // Gloo's timeout per step
  const auto device = device_for(within_machine);
  transport_ = device->str();
  group_ = gloo_group(store, place_, device);
  if (place_.several() && shares_memory) {
    sums_ = SharedSums::of(*store, rank(), size(), time_of(place_.settings.timeout));
  }
  if (sums_) transport_ += ", sums through shared memory";
}

RankGroup::~RankGroup() = default;

void RankGroup::sum(const at::Tensor& tensor) const {
  collective("summing", [&] {
    if (sums_ && sums_->takes(tensor)) return sums_->sum(tensor.detach());
    std::vector<at::Tensor> tensors = {tensor};
    group_->allreduce(tensors)->wait();
  });
}

int64_t RankGroup::sum(int64_t number) const {
  const at::Tensor tensor = at::full({1}, number, at::kLong);
  sum(tensor);
  return tensor.item<int64_t>();
}

void RankGroup::share(const std::vector<at::Tensor>& tensors) const {
  collective("sharing tensors", [&] {
    constexpr size_t kBuffer = size_t{25} << 20;
    std::vector<at::Tensor> filled;
    for (const at::Tensor& tensor : tensors) {
      if (tensor.numel() > 0) filled.push_back(tensor.detach());
    }
    if (!filled.empty()) c10d::broadcast_coalesced(group_, filled, kBuffer);
  });
}

std::string RankGroup::share(const std::string& text) const {
  const at::Tensor size = at::full({1}, static_cast<int64_t>(text.size()), at::kLong);
  share(std::vector<at::Tensor>{size});
  std::string result(static_cast<size_t>(size.item<int64_t>()), '\0');
  if (is_first()) result = text;
  if (result.empty()) return result;
  const at::Tensor bytes =
      at::from_blob(result.data(), {static_cast<int64_t>(result.size())}, at::kByte);
  share(std::vector<at::Tensor>{bytes});
  return result;
}

double RankGroup::share(double number) const {
  const at::Tensor tensor = at::full({1}, number, at::kDouble);
  share(std::vector<at::Tensor>{tensor});
  return tensor.item<double>();
}

std::vector<std::string> RankGroup::gather(const std::string& text) const {
  const at::Tensor sizes = at::zeros({size()}, at::kLong);
  auto* const size_of = sizes.data_ptr<int64_t>();
  size_of[rank()] = std::ssize(text);
  sum(sizes);
  const auto begin = [&](int rank) { return std::accumulate(size_of, size_of + rank, int64_t{0}); };
  std::string all(static_cast<size_t>(begin(size())), '\0');
  all.replace(static_cast<size_t>(begin(rank())), text.size(), text);
  if (!all.empty()) sum(at::from_blob(all.data(), {std::ssize(all)}, at::kByte));
  std::vector<std::string> texts;
  for (int rank = 0; rank < size(); ++rank) {
    texts.push_back(
        all.substr(static_cast<size_t>(begin(rank)), static_cast<size_t>(size_of[rank])));
  }
  return texts;
}

void RankGroup::wait() const {
  collective("waiting for the others", [&] { group_->barrier()->wait(); });
}

void RankGroup::agree(std::string_view what, const std::string& text) const {
  const std::string own = sha256(text);
  const auto length = static_cast<int64_t>(own.size());
  const at::Tensor all = at::zeros({size(), length}, at::kByte);
  std::memcpy(all[rank()].data_ptr(), own.data(), own.size());
  sum(all);
  for (int other = 1; other < size(); ++other) {
    if (!all[other].equal(all[0])) {
      throw ConfigError("rank ", other, " and rank 0 differ in ", what,
                        "; all ranks must have the same");
    }
  }
}

}  // namespace parsimony::training
