-- Where `result` is only its beginning: the artifact that has the whole, or 'not_kept'. Read by the run that has started this one.
ALTER TABLE holdpoint.runs ADD COLUMN result_artifact text;
