#include <filesystem>
#include <system_error>

#include "parsimony/base/errors.h"
#include "parsimony/base/files.h"
#include "parsimony/cli/command.h"
#include "parsimony/cli/options.h"
#include "parsimony/cli/outputs.h"
#include "parsimony/report/figures.h"
#include "parsimony/report/html/page.h"
#include "parsimony/report/sweep/summary.h"
#include "parsimony/report/text.h"

namespace parsimony::cli {
namespace {

/// Figures are worse than the baseline's; `figures` has the old values too.
VerificationError worse_than(std::string_view baseline, const std::vector<std::string>& figures) {
  std::string text = "worse than " + std::string(baseline) + ":";
  for (const std::string& figure : figures) text += "\n  " + figure;
  return VerificationError(text);
}

namespace fs = std::filesystem;

struct ReportOptions {
  std::vector<std::string> folders;
  std::string out;
  std::string title;
  std::string tensorboard;
  std::string against;
  double allowed = 1;  ///< per cent
};

/// Returns the folder of the report: --out, or that of the first ledger.
std::string folder_of(const ReportOptions& options) {
  if (!options.out.empty()) return options.out;
  const fs::path first = options.folders[0];
  if (fs::is_directory(first)) return first.string();
  return first.has_parent_path() ? first.parent_path().string() : ".";
}

void make_folder(const std::string& folder) {
  std::error_code error;
  fs::create_directory(folder, error);
  if (error) throw parsimony::errors::cannot_write(folder, error.value());
}

std::string summary(const SweepReport& report) {
  using enum Table::Align;
  Table table({"", "before", "after", "ratio"}, {kLeft, kRight, kRight, kRight});
  for (const Headline& line : report.headline) {
    table.add({line.what, line.before, line.after, line.ratio});
  }
  std::string text =
      printable(report.selected_name) + ": " + report.selected_because + "\n" + table.text();
  for (const std::string& note : report.notes) text += "note: " + printable(note) + "\n";
  return text;
}

void add_options(CLI::App& command, ReportOptions& options) {
  add_option(command, "dir", options.folders, "DIR",
             "Folders of sweeps, whose points are merged; or the JSON report of a prune, which is "
             "printed as Markdown")
      ->required();
  add_option(command, "--out", options.out, "DIR",
             "Folder for the four files (default: the first DIR)");
  add_option(command, "--title", options.title, "TEXT", "Title (default: model and data)");
  add_option(command, "--tensorboard", options.tensorboard, "DIR",
             "Write the points for TensorBoard as well: a run for each criterion and seed");
  add_option(command, "--against", options.against, "OLD",
             "Print the differences from an earlier report of the same kind as Markdown; fail if a "
             "figure is worse");
  add_option(command, "--allow", options.allowed, "PERCENT",
             "Tolerated regression of a figure, in percent (default: 1)")
      ->check(not_below_zero());
}

ReportFigures figures_in(const std::string& path) {
  const std::string file =
      fs::is_directory(path) ? (fs::path(path) / "report.json").string() : path;
  return read_figures(read_file(file), file);
}

bool is_report_file(const std::string& path) {
  return fs::is_regular_file(path) && is_report(read_file(path));
}

/// Prints the figures of a report, and what has changed.
/// @throws VerificationError if they are worse than the baseline's
void print_figures(const ReportOptions& options, const std::string& report) {
  const ReportFigures figures = figures_in(report);
  if (options.against.empty()) return print(to_markdown(figures, nullptr));
  const ReportFigures baseline = figures_in(options.against);
  print(to_markdown(figures, &baseline));
  const auto worse = what_is_worse(figures, baseline, options.allowed / 100);
  if (!worse.empty()) throw worse_than(options.against, worse);
}

void run(const ReportOptions& options, const Session& session) {
  if (options.folders.size() == 1 && is_report_file(options.folders[0])) {
    return print_figures(options, options.folders[0]);
  }
  const std::string text =
      write_report(options.folders, folder_of(options), options.title, options.tensorboard);
  if (!options.against.empty()) return print_figures(options, folder_of(options));
  if (!session.quiet) print(text);
}

}  // namespace

std::string write_report(const std::vector<std::string>& folders, const std::string& out,
                         const std::string& title, const std::string& tensorboard) {
  const SweepReport report = summarise(merge_ledgers(folders), title);
  make_folder(out);
  const auto path = [&](const char* name) { return (fs::path(out) / name).string(); };
  const std::vector<std::pair<std::string, std::string (*)(const SweepReport&)>> files = {
      {path("report.html"), to_html},
      {path("report.md"), to_markdown},
      {path("report.csv"), to_csv},
      {path("report.json"), to_json}};
  std::vector<NamedFile> outputs;
  for (const auto& [name, make] : files) outputs.push_back({"--out", name});
  check_outputs(outputs, {});
  if (!tensorboard.empty()) write_events(report, tensorboard);
  for (const auto& [name, make] : files) write_file(name, make(report));
  std::string text = summary(report);
  if (!has_charts()) text += "note: this Parsimony was built without charts; the page has tables\n";
  for (const auto& [name, make] : files) text += "wrote " + printable(name) + "\n";
  if (!tensorboard.empty()) text += "wrote runs in " + printable(tensorboard) + "\n";
  return text;
}

void add_report(CLI::App& app, Session& session) {
  add_command<ReportOptions>(app, session, "report",
                             "Writes a page, tables and JSON of a sweep; compares reports",
                             "parsimony report runs/cifar10", add_options, run);
}

}  // namespace parsimony::cli
