"""Writes data sets of Parquet as Hugging Face's `datasets` writes them, by pyarrow.

    parquet_files.py FOLDER KIND      KIND: texts, images, pairs

texts: train in two files and validation; premise, hypothesis, label (ClassLabel no, maybe, yes).
pairs: train; translation (a struct of en and de).
images: train and test; image (a struct of bytes and path), label (ClassLabel cat, dog)."""
import json
import pathlib
import sys

import pyarrow
import pyarrow.parquet

folder, kind = pathlib.Path(sys.argv[1]), sys.argv[2]
folder.mkdir(parents=True, exist_ok=True)


def write(name, columns, names, **options):
    features = {"label": {"names": names, "_type": "ClassLabel"}}
    metadata = {"huggingface": json.dumps({"info": {"features": features}})}
    table = pyarrow.table(columns).replace_schema_metadata(metadata)
    pyarrow.parquet.write_table(table, folder / name, **options)


def texts(first, last):
    numbers = range(first, last)
    return {
        "premise": pyarrow.array([f"text {i} caf\u00e9" for i in numbers]),
        "idx": pyarrow.array(list(numbers), pyarrow.int32()),
        "hypothesis": pyarrow.array([f"pair {i}" for i in numbers], pyarrow.large_string()),
        "label": pyarrow.array([i % 3 for i in numbers], pyarrow.int64()),
    }


def images(split):
    import io

    from PIL import Image

    rows, labels = [], []
    for i in range(6):
        file = io.BytesIO()
        Image.new("RGB", (16, 12), (40 * i, 255 - 40 * i, 99)).save(file, "JPEG")
        rows.append({"bytes": file.getvalue(), "path": f"{split}_{i}.jpg" if i % 2 else None})
        labels.append(i % 2)
    struct = pyarrow.struct([("bytes", pyarrow.binary()), ("path", pyarrow.string())])
    return {"image": pyarrow.array(rows, struct), "label": pyarrow.array(labels)}


if kind == "texts":
    classes = ["no", "maybe", "yes"]
    write("train-00000-of-00002.parquet", texts(0, 3000), classes, row_group_size=700)
    write("train-00001-of-00002.parquet", texts(3000, 3500), classes, compression="zstd")
    write("validation-00000-of-00001.parquet", texts(0, 10), classes, use_dictionary=False)
    broken = texts(0, 5)
    broken["premise"] = pyarrow.array(["a", "b", None, "c", "d"])
    pyarrow.parquet.write_table(pyarrow.table(broken), folder / "null.parquet")
elif kind == "pairs":
    rows = [{"en": f"house {i}", "de": f"Haus {i}"} for i in range(1500)]
    struct = pyarrow.struct([("en", pyarrow.string()), ("de", pyarrow.string())])
    columns = {"translation": pyarrow.array(rows, struct), "id": pyarrow.array(range(1500))}
    pyarrow.parquet.write_table(pyarrow.table(columns), folder / "train.parquet")
else:
    write("train-00000-of-00001.parquet", images("train"), ["cat", "dog"])
    write("test-00000-of-00001.parquet", images("test"), ["cat", "dog"])
