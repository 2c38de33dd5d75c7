#include "serve/decoding_queue.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "unit/serve/gated_decoder.h"

namespace lockstep {
namespace {

using Lines = std::vector<std::string>;
using std::chrono::seconds;

// A queue with one worker and what is told of its finished jobs.
struct Queue {
  explicit Queue(GatedDecoder& decoder, DecodingQueue::Options options = {})
      : queue(decoder, options, [this] {
          std::lock_guard lock(mutex);
          ++woken;
          changed.notify_all();
        }) {}

  // Waits until so many jobs are finished, and returns all of them by number.
  std::map<uint64_t, DecodingQueue::Finished> wait_for(std::size_t count) {
    const auto until = std::chrono::steady_clock::now() + seconds(20);
    while (finished.size() < count && std::chrono::steady_clock::now() < until) {
      std::unique_lock lock(mutex);
      changed.wait_for(lock, std::chrono::milliseconds(50), [this] { return woken > 0; });
      woken = 0;
      lock.unlock();
      for (auto& one : queue.take_finished()) finished.emplace(one.job, std::move(one));
    }
    return finished;
  }

  std::mutex mutex;
  std::condition_variable changed;
  int woken = 0;
  std::map<uint64_t, DecodingQueue::Finished> finished;
  DecodingQueue queue;
};

TEST(DecodingQueue, GivesTheLinesBackInTheirOrder) {
  GatedDecoder decoder;
  Queue q(decoder);
  ASSERT_TRUE(q.queue.submit(1, {"a long line of words", "b", "", "in between"}));
  ASSERT_TRUE(q.queue.submit(2, {}));
  const auto finished = q.wait_for(2);
  ASSERT_EQ(finished.size(), 2U);
  Lines texts;
  for (const auto& line : finished.at(1).lines) texts.push_back(line.front().text);
  EXPECT_EQ(texts, (Lines{"A LONG LINE OF WORDS", "B", "", "IN BETWEEN"}));
  EXPECT_TRUE(finished.at(2).lines.empty());
  EXPECT_EQ(q.queue.figures().lines, 4);
  EXPECT_EQ(q.queue.figures().waiting, 0);
}

TEST(DecodingQueue, DecodesWhatArrivesMeanwhileTogetherAndByLength) {
  GatedDecoder decoder(false);
  Queue q(decoder, {.batch_tokens = 60});
  q.queue.submit(1, {"first"});
  ASSERT_TRUE(decoder.wait_for_batches(1));
  q.queue.submit(2, {"bb", std::string(40, 'x')});
  q.queue.submit(3, {"cc", std::string(38, 'y')});
  q.queue.submit(4, {"dd"});
  decoder.open();
  ASSERT_EQ(q.wait_for(4).size(), 4U);
  const auto batches = decoder.batches();
  ASSERT_EQ(batches.size(), 4U);  // the two long ones are more than 60 tokens together
  Lines short_ones = batches[1];
  std::sort(short_ones.begin(), short_ones.end());
  EXPECT_EQ(short_ones, (Lines{"bb", "cc", "dd"}));
  EXPECT_EQ(q.queue.figures().shared_batches, 1);
}

TEST(DecodingQueue, DoesNotKeepOneLineWaitingForThousandsThatCameBefore) {
  GatedDecoder decoder(false);
  Queue q(decoder, {.batch_tokens = 10});  // one line a batch
  q.queue.submit(1, Lines(50, "eight ch"));
  ASSERT_TRUE(decoder.wait_for_batches(1));
  q.queue.submit(2, {"a single"});
  decoder.open();
  ASSERT_EQ(q.wait_for(2).size(), 2U);
  const auto batches = decoder.batches();
  const auto at = std::find(batches.begin(), batches.end(), Lines{"a single"});
  EXPECT_LE(at - batches.begin(), 3);
}

TEST(DecodingQueue, RefusesWhatDoesNotFitAndGoesOn) {
  GatedDecoder decoder(false);
  Queue q(decoder, {.lines = 3});
  q.queue.submit(1, {"under way"});
  ASSERT_TRUE(decoder.wait_for_batches(1));
  EXPECT_TRUE(q.queue.submit(2, {"a", "b"}));
  EXPECT_FALSE(q.queue.submit(3, {"c", "d"}));
  EXPECT_TRUE(q.queue.submit(4, {"e"}));
  EXPECT_EQ(q.queue.figures().waiting, 3);
  decoder.open();
  EXPECT_EQ(q.wait_for(3).size(), 3U);
  EXPECT_TRUE(q.queue.submit(3, {"c", "d"}));
  EXPECT_EQ(q.wait_for(4).count(3), 1U);
}

TEST(DecodingQueue, DropsWhatIsCancelled) {
  GatedDecoder decoder(false);
  Queue q(decoder);
  q.queue.submit(1, {"under way"});
  ASSERT_TRUE(decoder.wait_for_batches(1));
  q.queue.submit(2, {"not wanted", "any more"});
  q.queue.submit(3, {"wanted"});
  q.queue.cancel(2);
  q.queue.cancel(1);
  decoder.open();
  const auto finished = q.wait_for(1);
  EXPECT_EQ(finished.count(3), 1U);
  EXPECT_EQ(finished.count(1) + finished.count(2), 0U);
  EXPECT_EQ(decoder.batches(), (std::vector<Lines>{{"under way"}, {"wanted"}}));
  EXPECT_EQ(q.queue.figures().waiting, 0);
}

TEST(DecodingQueue, EndsOnlyTheRequestsOfABatchThatFails) {
  GatedDecoder decoder;
  Queue q(decoder, {.batch_tokens = 8});
  q.queue.submit(1, {"fault", "another"});
  q.wait_for(1);
  q.queue.submit(2, {"fine"});
  const auto finished = q.wait_for(2);
  EXPECT_EQ(finished.at(1).failure, "a planted fault");
  EXPECT_EQ(finished.at(2).failure, "");
  EXPECT_EQ(q.queue.figures().waiting, 0);
}

TEST(DecodingQueue, WaitsForOthersOnlyWhereThereWereOthers) {
  GatedDecoder decoder;
  // Longer than the test may take: a wait that is paid for nothing fails it.
  Queue q(decoder, {.wait = std::chrono::hours(1)});
  for (uint64_t job = 1; job <= 5; ++job) {  // one client, one request after the other
    q.queue.submit(job, {"alone"});
    ASSERT_EQ(q.wait_for(job).count(job), 1U);
  }
  decoder.close();
  q.queue.submit(6, {"a"});
  ASSERT_TRUE(decoder.wait_for_batches(6));
  q.queue.submit(7, {"b"});
  q.queue.submit(8, {"c"});
  decoder.open();
  ASSERT_EQ(q.wait_for(8).size(), 8U);  // 7 and 8 were in one batch: two were here
  q.queue.submit(9, {"d"});             // waits for the other one
  q.queue.submit(10, {"e"});
  ASSERT_EQ(q.wait_for(10).size(), 10U);
  const std::vector<std::string> last = decoder.batches().back();
  EXPECT_EQ(last.size(), 2U);
}

}  // namespace
}  // namespace lockstep
