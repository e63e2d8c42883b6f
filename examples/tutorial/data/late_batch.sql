-- A second batch: new, late and repeated changes, in no order.
INSERT INTO main.cdc_tutorial.users_cdf VALUES
  -- Mercedes' last change again: a redelivery changes nothing.
  (125, "Mercedes", "Guadalajara", "UPDATE", 6),
  -- Raul moves.
  (124, "Raul",     "Puebla",      "UPDATE", 4),
  -- Late: Isabel moved at 3, between changes that arrived before, and was deleted at 6.
  (123, "Isabel",   "Saltillo",    "UPDATE", 3),
  -- Late: Lily's first city, before the change the tables know.
  (126, "Lily",     "Merida",      "INSERT", 1);
