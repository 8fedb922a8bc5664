// Summarises the points of one or several ledgers for a report.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "parsimony/report/ledger.h"

namespace parsimony {

/// Distribution of a quantity over the seeds of one setting.
struct Spread {
  double mean = 0;
  double low = 0;  ///< minimum over the seeds; too few for an interval estimate
  double high = 0;
};

/// Returns a metric of a point; NaN if it has none of that name.
double metric_of(const LedgerPoint& point, const std::string& name);

inline std::optional<double> mean_of(const std::optional<Spread>& spread) {
  return spread ? std::optional(spread->mean) : std::nullopt;
}

/// A point and its baseline.
struct SweepRow {
  LedgerPoint point;
  std::string series;           ///< the criterion or "dense", and a suffix that distinguishes runs
  std::optional<size_t> dense;  ///< row of the dense network of the same run and seed
  /// The score of the dense network; without one, the point's own score before pruning.
  LedgerPoint::Score reference;
  double change = 0;                    ///< of accuracy, 0..1, from raw counts; dense: 0
  std::optional<double> train_speedup;  ///< dense seconds / own seconds; only with a dense network
};

/// All seeds of one series at one sparsity.
struct SweepSetting {
  std::string series;
  std::string run;  ///< model and data; settings of different runs are not comparable
  double sparsity = 0;
  std::vector<size_t> rows;
  Spread params;  ///< after pruning
  Spread macs;
  double macs_ratio = 1;             ///< before over after, the mean
  Spread accuracy;                   ///< 0..1
  std::optional<Spread> perplexity;  ///< of language models
  Spread change;
  Spread seconds;  ///< of training
  std::optional<Spread> train_speedup;
  LedgerPoint::Phases phases;  ///< of training, the mean
  /// Spreads of the report's metrics, over the seeds that have them.
  std::vector<std::optional<Spread>> metrics;
  bool front = false;  ///< no other setting of its run is as fast and more accurate
};

/// A line of the headline.
struct Headline {
  std::string what;    ///< "parameters"
  std::string before;  ///< "2,122,186"
  std::string after;
  std::string ratio;  ///< "2.00×"; for accuracy "−1.18 points"; "–" where there is none
  std::string note;   ///< conditions under which the numbers hold, if any
};

/// Returns the means of a setting's metrics as texts.
std::vector<std::string> metric_cells(const SweepSetting& setting);

struct SweepReport {
  std::string title;
  std::vector<SweepRow> rows;  ///< sorted by series, sparsity and seed
  std::vector<SweepSetting> settings;
  std::vector<std::string> metrics;  ///< names of the points' metrics, in addition to the accuracy
  size_t selected = 0;               ///< row of the headline
  std::string selected_name;         ///< "l1 at 50%, seed 0 (the middle one of 3)"
  std::string selected_because;      ///< "the smallest network that …"
  std::vector<Headline> headline;
  std::vector<std::string> notes;
};

/// Compares the points. The headline shows the smallest network that loses at most one point of
/// accuracy (the median of its seeds); if there is none, the one nearest to 50%. @param title
/// empty: the names of model and data
/// @throws ModelError if there is no point
SweepReport summarise(LedgerContent content, std::string title = {});

/// Returns {"parsimony_sweep": 1, "title": …, "selected": …, "settings": […], "points": […]}.
std::string to_json(const SweepReport& report);

/// Returns the data of the page's charts, a part of that object.
std::string chart_json(const SweepReport& report);

/// Returns one line per point, after a header.
std::string to_csv(const SweepReport& report);

std::string to_markdown(const SweepReport& report);

/// Writes the trade-off for TensorBoard: a sub-folder for each series and seed ("l1-seed0") with a
/// new event file, whose steps are sparsities in percent, rounded; a pruned series begins with the
/// dense network of its seed. @throws IoError
void write_events(const SweepReport& report, const std::string& folder);

}  // namespace parsimony
