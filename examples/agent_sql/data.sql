INSERT INTO customer VALUES
    (1, 'Ines', 'Lisbon'), (2, 'Tariq', 'Leeds'), (3, 'Mei', 'Lisbon'), (4, 'Oskar', 'Gdansk'), (5, 'Ana', 'Leeds');

INSERT INTO product VALUES
    (1, 'kettle', 2900, 12), (2, 'lamp', 4500, 3), (3, 'chair', 8900, 0), (4, 'mug', 700, 40), (5, 'clock', 3300, 7);

INSERT INTO purchase VALUES
    (1, 1, 1, 1, 'sent'), (2, 1, 4, 6, 'sent'), (3, 2, 2, 1, 'open'), (4, 3, 4, 2, 'open'), (5, 3, 5, 1, 'cancelled'),
    (6, 4, 3, 4, 'sent'), (7, 4, 2, 2, 'open'), (8, 5, 1, 1, 'sent'), (9, 5, 4, 1, 'open'), (10, 2, 5, 3, 'sent');
