-- No order is for more than a million units. It is a rule of the database alone, as many are in the field: a message that
-- breaks it passes every check before, and only the insert refuses it.
alter table effect_log
    add constraint effect_log_count_limit check (count <= 1000000);
