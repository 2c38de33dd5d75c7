#include "commands/corpora/tokenize.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <memory>

#include "base/ordered_parallel.h"
#include "base/usable_cores.h"
#include "data/lines/line_blocks.h"
#include "data/tokenize/text_codec.h"

namespace lockstep {

namespace {

// The output of a block, and the error that ended it, so that earlier lines are not lost.
struct Translated {
  std::string text;
  std::exception_ptr failure;
};

Translated translate_block(const TextCodec& codec, bool decode, const LineBlock& block) {
  Translated out;
  std::string_view rest = block.text;
  try {
    for (int64_t number = block.first_number; !rest.empty(); ++number) {
      TextLine line{.text = take_line(rest), .number = number};
      if (decode) {
        codec.decode(line, out.text);
      } else {
        codec.encode(line, out.text);
      }
      out.text += '\n';
    }
  } catch (...) {
    out.failure = std::current_exception();
  }
  return out;
}

void print_block(const Translated& block) {
  bool written =
      std::fwrite(block.text.data(), 1, block.text.size(), stdout) == block.text.size() &&
      std::fflush(stdout) == 0;
  if (!written) throw MachineError("standard output: cannot be written: {}", std::strerror(errno));
  if (block.failure) std::rethrow_exception(block.failure);
}

}  // namespace

int tokenize(const Arguments& arguments) {
  std::string model;
  CodecOptions options;
  bool ids = false, decode = false, no_special = false;
  int64_t threads = usable_threads();
  CommandLine app(
      "Translates the lines of standard input: text to pieces or ids of a vocabulary, or back.",
      "lockstep tokenize");
  app.add_option("model", model,
                 "a SentencePiece .model, the vocab.txt of a BERT, or a folder with either: a "
                 "prepared corpus, a run, an exported model")
      ->required();
  CommandOption pieces = app.add_flag("--pieces", options.pieces, "pieces (the default for text)");
  app.add_flag("--ids", ids, "ids (the default for --decode)")->excludes(pieces);
  app.add_flag("--decode", decode, "lines of ids, or with --pieces of pieces, to text");
  app.add_option("--threads", threads, "that work at once")->range(1, 1024)->capture_default_str();
  app.add_flag("--target", options.target, "lines of the target's language")
      ->group("Published translation models");
  app.add_flag("--bos", options.start, "with <s>")->group("SentencePiece");
  app.add_flag("--eos", options.end, "with </s>")->group("SentencePiece");
  app.add_flag("--cased", options.cased, "neither lower-cased nor stripped of accents")
      ->group("BERT");
  app.add_flag("--pairs", options.pairs, "two texts a line, a tab between them")->group("BERT");
  app.add_option("--max-length", options.max_length, "ids at most, [CLS] and [SEP] included")
      ->positive()
      ->group("BERT");
  app.add_flag("--no-special", no_special, "without [CLS] and [SEP]")->group("BERT");
  app.add_flag("--type-ids", options.type_ids, "the type ids, too, after a tab")->group("BERT");
  if (!app.parse(arguments)) return kExitOk;
  options.special = !no_special;
  options.pieces = options.pieces || (!ids && !decode);

  std::unique_ptr<TextCodec> codec = load_text_codec(model, options);
  LineBlockReader reader(STDIN_FILENO);
  ordered_stream(
      threads, [&] { return reader.next(); },
      [&](const LineBlock& block) { return translate_block(*codec, decode, block); }, print_block);
  return kExitOk;
}

}  // namespace lockstep
