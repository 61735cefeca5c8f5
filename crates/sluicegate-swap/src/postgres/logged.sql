
-- A table that was made before it had to be logged. Nothing is locked if it is logged already.
DO $logged$
BEGIN
    IF (SELECT relpersistence FROM pg_class WHERE oid = '{table}'::regclass) = 'u' THEN
        ALTER TABLE {table} SET LOGGED;
    END IF;
END
$logged$;
