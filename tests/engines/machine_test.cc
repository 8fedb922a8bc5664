#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <stdexcept>

#include "parsimony/engines/machine/processor.h"
#include "parsimony/engines/machine/report.h"
#include "tests/support/fixture.h"

namespace parsimony::machine {
namespace {

namespace fs = std::filesystem;

constexpr const char* kAvx512 =
    "processor\t: 0\nmodel name\t: AMD EPYC\nmodel\t\t: 2\n"
    "flags\t\t: fpu avx avx2 fma avx512f avx512dq avx512cd avx512bw avx512vl\n";

TEST(Processor, IsReadFromItsFlags) {
  const Processor processor = parse_processor(kAvx512);
  EXPECT_EQ(processor.model, "AMD EPYC");
  EXPECT_TRUE(processor.has("fma"));
  EXPECT_FALSE(processor.has("avx51"));
  EXPECT_EQ(vectors_of(processor), Vectors::kAvx512);
}

TEST(Processor, NeedsAllPartsOfAVectorSet) {
  EXPECT_EQ(vectors_of(parse_processor("flags : avx avx2 fma avx512f\n")), Vectors::kAvx2);
  EXPECT_EQ(vectors_of(parse_processor("flags : avx avx2\n")), Vectors::kAvx);
  EXPECT_EQ(vectors_of(parse_processor("Features : asimd\n")), Vectors::kNone);
}

/// A control group hierarchy in a folder.
class Groups : public testing::Test {
 protected:
  void write(const std::string& file, const std::string& text) const {
    fs::create_directories(fs::path(folder_ / file).parent_path());
    std::ofstream(folder_ / file) << text;
  }
  double quota(const std::string& membership) const { return quota_of(membership, folder_ / ""); }

 private:
  test::TemporaryFolder folder_;
};

TEST_F(Groups, TheTightestLimitHolds) {
  write("a/cpu.max", "150000 100000\n");
  write("a/b/cpu.max", "max 100000\n");
  EXPECT_DOUBLE_EQ(quota("0::/a/b\n"), 1.5);
  EXPECT_TRUE(std::isinf(quota("0::/\n")));
}

TEST_F(Groups, OfVersionOneAreReadToo) {
  write("cpu,cpuacct/a/cpu.cfs_quota_us", "50000\n");
  write("cpu,cpuacct/a/cpu.cfs_period_us", "100000\n");
  write("cpu,cpuacct/b/cpu.cfs_quota_us", "-1\n");
  write("cpu,cpuacct/b/cpu.cfs_period_us", "100000\n");
  EXPECT_DOUBLE_EQ(quota("5:memory:/x\n4:cpu,cpuacct:/a\n"), 0.5);
  EXPECT_TRUE(std::isinf(quota("4:cpu,cpuacct:/b\n")));
}

TEST(Cores, AQuotaLimitsTheThreads) {
  Cores cores;
  cores.online = 8;
  cores.allowed = 6;
  EXPECT_EQ(cores.usable(), 6);
  cores.quota = 1.5;
  EXPECT_EQ(cores.usable(), 2);
  cores.quota = 0.1;
  EXPECT_EQ(cores.usable(), 1);
}

MachineReport slow_machine() {
  MachineReport report;
  report.processor = parse_processor(kAvx512);
  report.cores.online = report.cores.allowed = 2;
  report.allocator = "glibc";
  report.torch = TorchFacts{};
  report.torch->aten_threads = 1;
  report.torch->capability = "AVX2";
  report.torch->onednn = true;
  report.torch->product_gflops = 3;
  report.torch->convolution_gflops = 90;
  report.torch->steps = {{1, 0.02}, {2, 0.012}};
  report.torch->best_threads = 2;
  report.torch->seconds_with_aten_threads = 0.024;
  return report;
}

const Finding& finding(const MachineReport& report, const std::string& subject) {
  for (const Finding& finding : report.findings) {
    if (finding.subject == subject) return finding;
  }
  throw std::out_of_range(subject);
}

TEST(Advise, NamesTheCostAndTheCure) {
  MachineReport report = slow_machine();
  advise(report);
  EXPECT_DOUBLE_EQ(finding(report, "libtorch").cost, 30);
  EXPECT_NE(finding(report, "libtorch").advice.find("another BLAS"), std::string::npos);
  EXPECT_DOUBLE_EQ(finding(report, "threads").cost, 2);
  EXPECT_NE(finding(report, "threads").advice.find("OMP_NUM_THREADS=2"), std::string::npos);
}

TEST(Advise, CountsWhatFetchingMemoryTakes) {
  MachineReport report = slow_machine();
  report.torch->faults_per_step = 3000;
  report.torch->seconds_per_fault = 4e-6;
  advise(report);
  EXPECT_DOUBLE_EQ(finding(report, "allocator").cost, 2);
  EXPECT_NE(finding(report, "allocator").advice.find("MALLOC_TRIM_THRESHOLD_"), std::string::npos);
}

TEST(Advise, IsSilentWhereAllIsWell) {
  MachineReport report = slow_machine();
  report.torch->product_gflops = 80;
  report.torch->aten_threads = 2;
  report.torch->seconds_with_aten_threads = 0.012;
  advise(report);
  for (const Finding& finding : report.findings) {
    EXPECT_EQ(finding.advice, "") << finding.subject;
    EXPECT_DOUBLE_EQ(finding.cost, 1) << finding.subject;
  }
}

}  // namespace
}  // namespace parsimony::machine
