"""Prints as JSON what TensorBoard's own reader finds in a folder of event files."""
import json
import sys

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.plugins.hparams import metadata as hparams

everything = {"scalars": 0, "tensors": 0, "images": 0, "histograms": 0}
events = EventAccumulator(sys.argv[1], size_guidance=everything)
events.Reload()
tags = events.Tags()


def hyper_parameters():
    """What the plugin hparams reads; none without its summaries."""
    content = events.PluginTagToContent(hparams.PLUGIN_NAME)
    experiment = hparams.parse_experiment_plugin_data(content[hparams.EXPERIMENT_TAG])
    start = hparams.parse_session_start_info_plugin_data(content[hparams.SESSION_START_INFO_TAG])
    out = {
        "names": {info.name: info.type for info in experiment.hparam_infos},
        "metrics": [info.name.tag for info in experiment.metric_infos],
        "values": {
            name: getattr(value, value.WhichOneof("kind")) for name, value in start.hparams.items()
        },
        "start": start.start_time_secs,
    }
    if hparams.SESSION_END_INFO_TAG in content:
        end = hparams.parse_session_end_info_plugin_data(content[hparams.SESSION_END_INFO_TAG])
        out["status"] = end.status
    return out


def histogram(point):
    value = point.histogram_value
    return {"step": point.step, "min": value.min, "max": value.max, "num": value.num,
            "sum": value.sum, "bucket_limit": list(value.bucket_limit),
            "bucket": list(value.bucket)}


def is_text(tag):
    return events.SummaryMetadata(tag).plugin_data.plugin_name == "text"


result = {
    "scalars": {
        tag: [[point.step, point.wall_time, point.value] for point in events.Scalars(tag)]
        for tag in tags["scalars"]
    },
    "texts": {
        tag: [
            [point.step, point.wall_time, [s.decode() for s in point.tensor_proto.string_val]]
            for point in events.Tensors(tag)
        ]
        for tag in tags["tensors"] if is_text(tag)
    },
    "plugins": {
        tag: events.SummaryMetadata(tag).plugin_data.plugin_name for tag in tags["tensors"]
    },
    "images": {
        tag: [[point.step, point.width, point.height] for point in events.Images(tag)]
        for tag in tags["images"]
    },
    "histograms": {
        tag: [histogram(point) for point in events.Histograms(tag)] for tag in tags["histograms"]
    },
    "hyper": hyper_parameters() if hparams.PLUGIN_NAME in {
        events.SummaryMetadata(tag).plugin_data.plugin_name for tag in tags["tensors"]
    } else None,
    "file_version": events.file_version,
}
json.dump(result, sys.stdout)
