// Which stream of a mesh a sum takes.
#include "dist/collectives/mesh.h"

#include <gtest/gtest.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <future>
#include <numeric>
#include <torch/csrc/distributed/c10d/HashStore.hpp>

#include "base/descriptor.h"
#include "kernels/kernel_table.h"

namespace lockstep {
namespace {

constexpr int kStreams = 4;

// Members of a mesh, and what each stream from the first to the second one has sent.
class MeshStreams : public ::testing::Test {
 protected:
  void connect(int size, int streams = kStreams) {
    mesh_.clear();
    sent_by_.clear();
    const Token secret = random_token();
    auto store = c10::make_intrusive<c10d::HashStore>();
    std::vector<std::future<std::vector<std::vector<int>>>> sockets;
    std::vector<MeshMembers> all;
    for (int me = 0; me < size; ++me) {
      MeshMembers m{.me = me, .address = "127.0.0.1", .secret = secret, .streams = streams};
      for (int rank = 0; rank < size; ++rank) m.ranks.push_back(rank);
      all.push_back(m);
      sockets.push_back(std::async(std::launch::async, [store, m] {
        return connect_mesh(*store, m, std::chrono::seconds(20));
      }));
    }
    for (std::size_t me = 0; me < all.size(); ++me) {
      const auto mine = sockets[me].get();
      if (me == 0) {
        for (const std::vector<int>& stream : mine) sent_by_.emplace_back(::dup(stream.at(1)));
      }
      mesh_.push_back(std::make_unique<Mesh>(all[me], mine));
    }
  }

  // Starts `count` sums of `bytes` at once and waits for them. Their results must be right.
  void sum(int count, std::size_t bytes) {
    const Summation summation{4, kernels().sum.fp32};
    const auto members = static_cast<int>(mesh_.size());
    std::vector<std::vector<float>> data;
    for (int i = 0; i < members * count; ++i) {
      auto& numbers = data.emplace_back(bytes / 4);
      std::iota(numbers.begin(), numbers.end(), static_cast<float>(i));
    }
    std::vector<std::shared_future<void>> running;
    for (int i = 0; i < members * count; ++i) {
      running.push_back(mesh_.at(static_cast<std::size_t>(i % members))
                            ->start_sum(std::as_writable_bytes(std::span(data[i])), summation));
    }
    for (const auto& done : running) done.get();
    for (int i = 0; i < members * count; ++i) {
      int first = 0;  // of the sum: those of the members' first numbers
      for (int m = 0; m < members; ++m) first += i / members * members + m;
      std::size_t wrong = 0;
      for (std::size_t j = 0; j < data[i].size(); ++j) {
        // Whole numbers below 2^24: exact.
        wrong += data[i][j] != static_cast<float>(first + members * static_cast<int>(j)) ? 1 : 0;
      }
      EXPECT_EQ(wrong, 0u) << "sum " << i / members << " of member " << i % members;
    }
  }

  std::vector<uint64_t> bytes_of_streams() const {
    std::vector<uint64_t> out;
    for (const Descriptor& socket : sent_by_) {
      tcp_info info{};
      socklen_t length = sizeof info;
      EXPECT_EQ(::getsockopt(socket.get(), IPPROTO_TCP, TCP_INFO, &info, &length), 0);
      out.push_back(info.tcpi_bytes_sent);
    }
    return out;
  }

  std::vector<Descriptor> sent_by_;
  std::vector<std::unique_ptr<Mesh>> mesh_;
};

// A stream that is idle loses its window: on long paths sums on streams in turn took three times as
// long (benchmarks/notes/2026-11-slow-links.md).
TEST_F(MeshStreams, SumsInTurnStayOnOne) {
  connect(2);
  for (int i = 0; i < 20; ++i) sum(1, 64 << 10);
  const std::vector<uint64_t> bytes = bytes_of_streams();
  EXPECT_GE(bytes.at(0), 20 * (64u << 10));
  for (std::size_t stream = 1; stream < kStreams; ++stream) EXPECT_LT(bytes.at(stream), 1000u);
}

TEST_F(MeshStreams, LargeSumsAtOnceTakeAll) {
  connect(2);
  constexpr std::size_t kBytes = 4 << 20;
  for (int i = 0; i < 3; ++i) sum(2 * kStreams, kBytes);
  for (const uint64_t bytes : bytes_of_streams()) EXPECT_GE(bytes, kBytes);
}

// Sizes around those where arrays are cut, some of them no multiple of a cache line.
class MeshParts : public MeshStreams, public ::testing::WithParamInterface<int> {};

TEST_P(MeshParts, OfThreeMembersMakeTheWhole) {
  connect(3, GetParam());
  for (const std::size_t bytes : {4, 60, 131068, 262148, 393220, 1000004, 8000004}) {
    sum(5, bytes);
  }
}

INSTANTIATE_TEST_SUITE_P(Streams, MeshParts, ::testing::Values(1, kStreams),
                         ::testing::PrintToStringParamName());

// As one does that fails in the next sum: some of its connections are seen to end before what came
// through others was used.
TEST_F(MeshStreams, AMemberThatLeavesAfterASumSpoilsItForNobody) {
  const Summation summation{4, kernels().sum.fp32};
  for (int round = 0; round < 30; ++round) {
    connect(3);
    std::vector<std::vector<float>> data(mesh_.size(),
                                         std::vector<float>(round % 2 ? 100 : 300000));
    std::vector<std::shared_future<void>> running;
    for (std::size_t i = 0; i < mesh_.size(); ++i) {
      running.push_back(mesh_[i]->start_sum(std::as_writable_bytes(std::span(data[i])), summation));
    }
    running[1].get();
    mesh_[1].reset();
    EXPECT_NO_THROW(running[0].get());
    EXPECT_NO_THROW(running[2].get());
    const auto next = mesh_[0]->start_sum(std::as_writable_bytes(std::span(data[0])), summation);
    EXPECT_THROW(next.get(), std::runtime_error);
  }
}

// What a connection carried that was cut may be lost: others of the same member do not make up for
// it.
TEST_F(MeshStreams, AConnectionThatIsResetEndsTheNextSum) {
  connect(2);
  sum(1, 100);
  const sockaddr nobody{.sa_family = AF_UNSPEC, .sa_data = {}};
  ASSERT_EQ(::connect(sent_by_.back().get(), &nobody, sizeof nobody), 0);
  const Summation summation{4, kernels().sum.fp32};
  std::vector<float> mine(100), theirs(100);
  // A sum may be done before a mesh's thread hears of it, so some are tried.
  const auto sums = [&] {
    for (int i = 0; i < 1000; ++i) {
      const auto first = mesh_[0]->start_sum(std::as_writable_bytes(std::span(mine)), summation);
      mesh_[1]->start_sum(std::as_writable_bytes(std::span(theirs)), summation).get();
      first.get();
    }
  };
  EXPECT_THROW(sums(), std::runtime_error);
}

}  // namespace
}  // namespace lockstep
