// The ledger of a sweep, with one line per finished point, written crash-safe.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "parsimony/speedup/plan.h"

namespace parsimony {

/// The origin of a point, known before anything is trained.
struct LedgerOrigin {
  struct Model {
    std::string name;    ///< "cnn", or a file's path
    std::string sha256;  ///< of the file, or of the initial parameters
    bool operator==(const Model&) const = default;
  };
  struct Machine {
    std::string processor;
    int cores = 0;
    int threads = 0;
    bool operator==(const Machine&) const = default;
  };

  Model model;
  Machine machine;
  std::string config = "{}";  ///< a JSON object, as the sweep ran with it
  std::string version;        ///< of Parsimony
  std::string command;        ///< as it was typed

  bool operator==(const LedgerOrigin&) const = default;
};

/// Everything known about one trained network: its origin, cost and accuracy. The fields are
/// documented in docs/guide/report.md.
struct LedgerPoint : LedgerOrigin {
  struct Data {
    std::string name;  ///< "cifar10"
    std::string fingerprint;
    int64_t train = 0;  ///< examples
    int64_t test = 0;
    bool operator==(const Data&) const = default;
  };
  /// A count for the dense and the small network.
  struct Pair {
    int64_t before = 0;
    int64_t after = 0;
    bool operator==(const Pair&) const = default;
  };
  /// The median milliseconds of one batch.
  struct Latency {
    double before = 0;
    double after = 0;
    int64_t batch = 1;  ///< examples
    bool operator==(const Latency&) const = default;
  };
  /// Seconds of training by phase.
  struct Phases {
    double wait = 0;  ///< for data
    double forward = 0;
    double backward = 0;
    double optimizer = 0;
    double rest = 0;
    double exchange = 0;  ///< waiting for the gradients of other ranks
    double total() const;
    bool operator==(const Phases&) const = default;
  };
  /// The processes that trained the network together.
  struct Ranks {
    std::vector<int64_t>
        step_bytes;  ///< of gradients that each sends in a step: before a cut, after
    /// The speed of each in the last epoch, not counting waits for data and for others' gradients.
    std::vector<double> samples_per_second;
    bool operator==(const Ranks&) const = default;
  };
  /// Raw counts, since differences of rounded shares are unreliable.
  struct Score {
    int64_t correct = 0;
    int64_t total = 0;
    std::optional<double> perplexity =
        {};                ///< of a language model: exponential of the mean loss per token
    double share() const;  ///< 0..1; NaN if nothing was counted
    bool operator==(const Score&) const = default;
  };
  /// One epoch of training after pruning, and its result on the test set.
  struct Epoch {
    double seconds = 0;
    double loss = 0;  ///< mean over the training examples; NaN if training diverged
    Score score;
    bool operator==(const Epoch& other) const;
  };
  /// The outcome of one layer's channels.
  struct Layer {
    std::string name;
    std::string op;
    int64_t before = 0;
    int64_t after = 0;
    bool operator==(const Layer&) const = default;
  };
  /// The proof of the pruning step, its worst output. @see Proof
  struct Evidence {
    bool ran = false;
    double difference = 0;  ///< max|a - b| / max|a|; infinite if shapes differ
    double tolerance = 0;
    std::string against;  ///< "the original with the removed slices set to zero"
    std::string reason;   ///< why it did not run
    bool holds() const { return ran && difference <= tolerance; }
    bool operator==(const Evidence&) const = default;
  };

  /// The value of the model file as measured by a user's command.
  struct Metric {
    std::string name;  ///< the command
    bool lower_is_better = false;
    double value = 0;     ///< NaN if the command failed
    std::string failure;  ///< empty if it did not fail
    std::string output;   ///< of the command: its last lines
    std::string picture;  ///< written by the command, as a data URI; empty: none
    bool operator==(const Metric& other) const;
  };

  /// SHA-256 of everything that determines the point, in hexadecimal.
  std::string key;

  std::string criterion;  ///< "l1"
  double sparsity = 0;    ///< share of the channels to remove, 0..1; 0 is the dense network
  uint64_t seed = 0;

  Data data;

  Pair params;
  Pair macs;   ///< multiply-adds for one example
  Pair bytes;  ///< of the model file
  std::optional<Latency> latency_ms;

  Phases warm_up;  ///< seconds
  double prune_seconds = 0;
  Phases train;  ///< after pruning
  double evaluate_seconds = 0;
  std::optional<Ranks> ranks;  ///< none for a single process

  Score before;  ///< the dense network, after warm-up
  Score pruned;  ///< the small one, before any further training
  Score after;
  std::vector<Epoch> epochs;

  std::vector<Layer> layers;
  std::vector<UnprunedDim> unpruned_dims;
  std::optional<Evidence> proof;  ///< none: nothing was pruned
  std::vector<Metric> metrics;    ///< requested when the point was trained

  bool operator==(const LedgerPoint&) const = default;

  /// Returns whether both are the same result of the same point. Times may differ.
  bool agrees_with(const LedgerPoint& other) const;
};

struct TrainingPhase {
  const char* name;
  double LedgerPoint::Phases::*seconds;
};

inline constexpr std::array kTrainingPhases = {
    TrainingPhase{"wait", &LedgerPoint::Phases::wait},
    TrainingPhase{"forward", &LedgerPoint::Phases::forward},
    TrainingPhase{"backward", &LedgerPoint::Phases::backward},
    TrainingPhase{"optimizer", &LedgerPoint::Phases::optimizer},
    TrainingPhase{"rest", &LedgerPoint::Phases::rest},
    TrainingPhase{"exchange", &LedgerPoint::Phases::exchange}};

/// Returns the phases, without the exchange if there was none.
std::vector<TrainingPhase> phases_in(const LedgerPoint::Phases& seconds);

/// One line without its newline: {"parsimony_ledger":2,"key":…}.
/// @throws ConfigError if `config` is no JSON object
std::string to_json_line(const LedgerPoint& point);

/// Reads a line of to_json_line(). Unknown keys are ignored: later versions may add some.
/// @param place of the line, for messages: "runs/a/ledger.jsonl:3"
/// @throws ModelError naming place and field
/// @throws UnsupportedError if a newer version wrote it
LedgerPoint read_ledger_point(std::string_view line, std::string_view place);

/// The contents of a ledger.
struct LedgerContent {
  std::vector<LedgerPoint> points;  ///< in the order in which they were finished, each key once
  std::vector<std::string> notes;   ///< on skipped lines
};

/// The file `ledger.jsonl` in the folder of a sweep, which is append-only. Several processes may
/// append concurrently, also on several machines with a shared file system that supports flock.
///
///     Ledger ledger("runs/cifar10");
///     if (!ledger.keys().contains(key)) ledger.append(train(key));
class Ledger {
 public:
  /// Does not access the file; the folder must exist when something is appended.
  explicit Ledger(const std::string& folder);

  const std::string& path() const { return path_; }

  /// Appends the point and flushes it to disk. An unfinished line left by a killed process is
  /// removed first. Returns false, and writes nothing, if another process has finished the same
  /// point in the meantime.
  /// @throws IoError if the file cannot be written; it is then unchanged @throws ModelError if the
  /// file contains anything other than ledger lines
  bool append(const LedgerPoint& point);

  /// Returns the finished points; none if there is no file yet.
  /// @throws IoError, ModelError, UnsupportedError @see read_ledger
  LedgerContent content() const;
  std::vector<LedgerPoint> points() const { return content().points; }
  std::set<std::string> keys() const;

 private:
  std::string path_;
};

/// Reads one file. Of equal lines with the same key, the first counts; an incomplete last line is
/// ignored.
/// @throws IoError if it cannot be read
/// @throws ModelError if a line is not a point, or naming two lines that contradict each other
/// @throws UnsupportedError if a newer version wrote it
LedgerContent read_ledger(const std::string& path);

/// Merges the ledgers of several folders by the same rules. A file path is used directly.
/// @throws IoError if a folder has no ledger
LedgerContent merge_ledgers(std::span<const std::string> folders);

}  // namespace parsimony
