"""The one reader: from what users have to columns that were checked.

Numbers and fingerprints depend on the rows alone: not on the container, the file format, the number
of files or the neighbours of a row. What could be read in two ways is refused, with what to say
instead. Everybody in the project reads through this package.

Containers
    Lists, numpy, pandas, polars, pyarrow and torch enter alike. pandas' indexes are looked at: two
    that hold the same labels in another order are refused where both are labels (``.loc`` puts them
    in one order, ``.to_numpy()`` says that position is meant), and warned of where one is the plain
    ``RangeIndex``. Class columns of a frame are taken by their names.
Ids
    Integers of 64 bits stand for themselves, text is hashed. Text that is how an integer is written
    down is that integer: "7" and 7 are one id, "07", "+7" and "7.0" are others. So an id needs no
    type and no neighbours, and a CSV file, a parquet file of text and one of integers agree. Files
    of one call that hold only integers here and other text there are refused unless
    ``id_type="text"`` says that it is meant. Missing ids, floats, dates and bools are refused.
Labels
    0 and 1, truth values, or the classes that ``labels`` names; counts and targets are numbers.
Weights
    Numbers, not negative, not all zero.
Times
    Numbers, dates, datetimes, or text in ISO 8601 or a format that was given; the order of day and
    month is never guessed. Datetimes with a zone become instants of UTC, mixed zones too; with and
    without a zone in one column is refused. A period of datetimes has a unit.
Missing values
    None, NaN of objects, NaT, NA and nulls are counted and refused with the first row; only a field
    has a level for them. NaN among plain floats is a number that is not finite.
CSV
    A column has one type in all of its rows: a column of numbers is numbers to its last row; ids
    are text; labels are numbers if all are, truth values if all are, and text if not. An empty cell
    is missing. Semicolons and decimal commas are recognised and said, or given. Numbers such as
    2,306 whose comma may separate thousands are refused.
Names of columns
    A column that is asked for and occurs twice is refused. One that isn't there is refused with the
    one that differs by blanks or case only.
"""
