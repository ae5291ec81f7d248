-- Lanes of suspects: most claims meet none, and then look for none.
CREATE INDEX lanes_suspects ON lanes (class, track) WHERE active AND track IN (2, 3);
