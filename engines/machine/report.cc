#include "parsimony/engines/machine/report.h"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <utility>

#include "parsimony/base/files.h"
#include "parsimony/base/words.h"

namespace parsimony::machine {
namespace {

// Thresholds above the scatter of the measurements.
constexpr double kWorthSaying = 1.15;
constexpr double kSlowProducts = 1.5;  // times as slow as convolutions; libraries differ by shapes
constexpr double kWorthFetching = 0.05;

std::string number(double value) { return formatted(value < 10 ? "%.1f" : "%.0f", value); }

std::string allocator_in_use() {
  constexpr auto kStates = std::to_array<std::pair<const char*, const char*>>(
      {{"mi_version", "mimalloc"}, {"mallctl", "jemalloc"}, {"tc_version", "tcmalloc"}});
  for (const auto& [mark, name] : kStates) {
    if (dlsym(RTLD_DEFAULT, mark) != nullptr) return name;
  }
  return "glibc";
}

Finding finding_on(std::string subject, std::string found) {
  Finding finding;
  finding.subject = std::move(subject);
  finding.found = std::move(found);
  return finding;
}

Finding about_processor(const MachineReport& report) {
  const std::string& model = report.processor.model;
  return finding_on("processor", (model.empty() ? "unknown" : model) + ", " +
                                     std::string(name_of(vectors_of(report.processor))));
}

Finding about_cores(const MachineReport& report) {
  const Cores& cores = report.cores;
  Finding finding =
      finding_on("cores", std::to_string(cores.usable()) + " of " + std::to_string(cores.online) +
                              " usable, load " + number(cores.load));
  if (cores.allowed < cores.online) {
    finding.advice = "the affinity mask leaves " + std::to_string(cores.allowed) + " of " +
                     std::to_string(cores.online) + " cores; `taskset -p` shows and sets it";
  } else if (cores.quota < cores.online) {
    finding.advice = "the control group allows " + number(cores.quota) +
                     " cores' time; additional threads only wait";
  } else if (cores.load > cores.online + 0.5) {
    finding.advice = "run this again under less load: there are more runnable threads than cores";
  }
  return finding;
}

Finding about_aten(const TorchFacts& torch, const Processor& processor) {
  Finding finding =
      finding_on("libtorch", torch.version + ", own kernels " + torch.capability + ", " +
                                 (torch.onednn ? "with oneDNN" : "without oneDNN"));
  finding.measured = "matrix products " + number(torch.product_gflops) + " GFLOP/s";
  if (torch.convolution_gflops > 0) {
    finding.measured += ", oneDNN's convolutions " + number(torch.convolution_gflops);
    const double cost = torch.convolution_gflops / torch.product_gflops;
    if (cost >= kSlowProducts) {
      finding.cost = cost;
      finding.advice = "its matrix products are slow: use a libtorch with another BLAS";
    }
  }
  const Vectors could = vectors_of(processor);
  if (torch.capability == "DEFAULT" && could >= Vectors::kAvx2) {
    finding.advice = !environment("ATEN_CPU_CAPABILITY").empty()
                         ? "unset ATEN_CPU_CAPABILITY"
                         : "this libtorch was built without AVX2 kernels";
  } else if (!torch.onednn) {
    finding.advice = "convolutions are slow without oneDNN: use a libtorch with it";
  }
  return finding;
}

Finding about_threads(const TorchFacts& torch, const Cores& cores) {
  Finding finding = finding_on("threads", counted(torch.aten_threads, "thread") + " by default");
  double best = torch.seconds_with_aten_threads;
  std::string times;
  for (const ThreadTime& time : torch.steps) {
    best = std::min(best, time.seconds);
    times += (times.empty() ? "" : ", ") + number(1e3 * time.seconds) + " ms with " +
             std::to_string(time.threads);
  }
  finding.measured = "a training step takes " + times;
  if (best > 0) finding.cost = torch.seconds_with_aten_threads / best;
  if (finding.cost < kWorthSaying || torch.best_threads == torch.aten_threads) {
    finding.cost = 1;
    return finding;
  }
  finding.advice = "bench uses " + std::to_string(torch.best_threads) +
                   "; in other programs set OMP_NUM_THREADS=" + std::to_string(torch.best_threads);
  if (torch.best_threads < torch.aten_threads && cores.load > 1) {
    finding.advice += "; OMP_WAIT_POLICY=PASSIVE also helps while other programs run";
  }
  return finding;
}

/// Reports tensor memory that is returned to the system and faulted in again page by page.
Finding about_allocator(const MachineReport& report) {
  Finding finding = finding_on("allocator", report.allocator);
  if (!report.torch || report.torch->seconds_with_aten_threads <= 0) return finding;
  const TorchFacts& torch = *report.torch;
  const double step = torch.seconds_with_aten_threads;
  const double share = std::min(0.9, torch.faults_per_step * torch.seconds_per_fault / step);
  finding.measured = "fetching memory takes " + number(100 * share) + "% of a training step";
  if (share < kWorthFetching) return finding;
  finding.cost = 1 / (1 - share);
  if (report.allocator == "glibc") {
    finding.advice =
        "set MALLOC_MMAP_THRESHOLD_=1073741824 and MALLOC_TRIM_THRESHOLD_=4294967296, so that it "
        "keeps the memory of freed tensors";
  } else if (report.allocator == "mimalloc") {
    finding.advice = "set MIMALLOC_LARGE_OS_PAGES=1, so that it allocates 2 MB at once";
  }
  return finding;
}

}  // namespace

MachineReport facts() {
  MachineReport report;
  report.processor = this_processor();
  report.cores = these_cores();
  report.allocator = allocator_in_use();
  return report;
}

void advise(MachineReport& report) {
  report.findings = {about_processor(report), about_cores(report)};
  if (report.torch) {
    report.findings.push_back(about_aten(*report.torch, report.processor));
    report.findings.push_back(about_threads(*report.torch, report.cores));
  }
  report.findings.push_back(about_allocator(report));
}

MachineReport facts_without_torch() {
  MachineReport report = facts();
  advise(report);
  return report;
}

}  // namespace parsimony::machine
