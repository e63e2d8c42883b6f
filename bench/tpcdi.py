"""Makes ten years of customer and account actions, derived from the TPC-DI specification; a benchmark of ours,
not a TPC one.

In proportion to the scale factor SF: a first block of 9 SF new customers, then 434 windows with 3.5 SF NEW,
3.5 SF ADDACCT, 2 SF UPDACCT, SF CLOSEACCT, SF UPDCUST and SF / 2 INACT each, 5,000 SF actions in all. Block
and windows share 3,652 days equally. Ids are sequential, NEW brings a customer and an account, changes go to
entities of earlier windows, each of which ends at most once and has at most one action a day. An update of a
customer gives each contact field with probability one half and the tier with one fifth; what it leaves out
stays. The actions are drawn by a seeded loop; what they say comes from hashes of their numbers. All is the
same every time.

events() writes Parquet files: customers and accounts, each with what the action gives (sparse: null is
"stays") and with whole rows (full), one row an action, by number n and day.
"""

import datetime
import random

from shared import connect

WINDOWS = 434
DAYS = 3652
BEGIN = datetime.date(2007, 7, 9)
FIRST_DAY = datetime.date(2016, 7, 6)  # of the 365 daily batches
DAILY = 365
# Of one window at SF 10.
SHARES = {"NEW": 35, "ADDACCT": 35, "UPDACCT": 20, "CLOSEACCT": 10, "UPDCUST": 10, "INACT": 5}
FIRST_BLOCK = 90
# Check sums at SF 10.
SUMS = {"NEW": 15_280, "ADDACCT": 15_190, "UPDACCT": 8_680, "CLOSEACCT": 4_340, "UPDCUST": 4_340, "INACT": 2_170}

FIRST_NAMES = ["Ada", "Bela", "Caro", "Dario", "Elin", "Farid", "Gesa", "Hugo", "Ines", "Jorn", "Kaya", "Lars", "Mira", "Nilo", "Oda", "Piet"]
LAST_NAMES = ["Ahorn", "Birke", "Distel", "Erle", "Farn", "Ginster", "Hasel", "Iris", "Kiefer", "Linde", "Mohn", "Nelke", "Quitte", "Rose", "Ulme", "Weide"]
STREETS = ["Harbour Road", "Mill Lane", "Station Street", "North Quay", "Orchard Way", "Castle Hill", "Market Row", "Bridge End"]
CITIES = ["Altbury", "Brackmouth", "Corvale", "Dunmere", "Eastwick Bay", "Fernholt", "Grayford", "Hollin"]
STATES = ["AL", "BC", "CA", "ON", "NY", "QC", "TX", "WA"]


class Entities:
    """Those that live and are older than the window, and when each was last changed."""

    def __init__(self):
        self.live = []
        self.fresh = []
        self.last_window = []
        self.last_day = []

    def create(self, window, day):
        self.last_window.append(window)
        self.last_day.append(day)
        self.fresh.append(len(self.last_day) - 1)
        return self.fresh[-1]

    def draw(self, rng, window, day, ends):
        while True:
            place = rng.randrange(len(self.live))
            one = self.live[place]
            if self.last_window[one] != window and self.last_day[one] != day:
                break
        self.last_window[one] = window
        self.last_day[one] = day
        if ends:
            self.live[place] = self.live[-1]
            self.live.pop()
        return one

    def end_window(self):
        self.live += self.fresh
        self.fresh = []


def actions(scale):
    """(number, window, action, second since the beginning, customer or '', account or '')."""
    rng = random.Random(7919)
    customers, accounts, owner = Entities(), Entities(), []
    number = 0
    slot = DAYS * 86400 / (WINDOWS + 1)
    counted = dict.fromkeys(SHARES, 0)
    for window in range(WINDOWS + 1):
        counts = {"NEW": FIRST_BLOCK} if window == 0 else SHARES
        kinds = [kind for kind, share in counts.items() for _ in range(share * scale // 10)]
        rng.shuffle(kinds)
        for place, kind in enumerate(kinds):
            second = int((window + (place + 0.5) / len(kinds)) * slot)
            day = second // 86400
            customer = account = ""
            if kind in ("NEW", "ADDACCT"):
                # Opening an account is no change of the customer's row.
                customer = customers.create(window, day) if kind == "NEW" else customers.live[rng.randrange(len(customers.live))]
                account = accounts.create(window, day)
                owner.append(customer)
            elif kind in ("UPDCUST", "INACT"):
                customer = customers.draw(rng, window, day, kind == "INACT")
            else:
                account = accounts.draw(rng, window, day, kind == "CLOSEACCT")
                customer = owner[account]
            counted[kind] += 1
            yield number, window, kind, second, customer, account
            number += 1
        customers.end_window()
        accounts.end_window()
    wanted = {kind: count * scale // 10 for kind, count in SUMS.items()}
    if counted != wanted:
        raise SystemExit(f"wrong check sums: {counted}, expected {wanted}")


def one_of(words, salt):
    return f"{words}[1 + (hash(n * 64 + {salt}) % {len(words)})::INT]"


def digits(salt, count):
    return f"lpad((hash(n * 64 + {salt}) % {10 ** count})::VARCHAR, {count}, '0')"


def share(salt, percent):
    return f"hash(n * 64 + {salt} + 32) % 100 < {percent}"


# Name, type, value, percent of new rows that have it, percent of updates that give it.
CUSTOMER = [
    ("c_tax_id", "STRING", digits(1, 9), 100, 0),
    ("c_gndr", "STRING", one_of(["F", "M"], 2), 95, 0),
    ("c_tier", "INT", "CASE WHEN hash(n * 64 + 3) % 10 < 2 THEN 1 WHEN hash(n * 64 + 3) % 10 < 5 THEN 2 ELSE 3 END", 100, 20),
    ("c_dob", "DATE", "DATE '1930-01-01' + (hash(n * 64 + 4) % 25000)::INT", 100, 0),
    ("c_l_name", "STRING", one_of(LAST_NAMES, 5), 100, 0),
    ("c_f_name", "STRING", one_of(FIRST_NAMES, 6), 100, 0),
    ("c_m_name", "STRING", one_of(["A", "E", "J", "L", "M", "R"], 7), 75, 0),
    ("c_adline1", "STRING", f"({digits(8, 4)} || ' ' || {one_of(STREETS, 9)})", 100, 50),
    ("c_adline2", "STRING", f"('Flat ' || {digits(10, 2)})", 10, 50),
    ("c_zipcode", "STRING", digits(11, 5), 100, 50),
    ("c_city", "STRING", one_of(CITIES, 12), 100, 50),
    ("c_state_prov", "STRING", one_of(STATES, 13), 100, 50),
    ("c_ctry", "STRING", "CASE WHEN hash(n * 64 + 14) % 10 < 8 THEN 'US' ELSE 'CA' END", 100, 50),
    ("c_prim_email", "STRING", f"('box' || {digits(15, 7)} || '@example.org')", 100, 50),
    ("c_alt_email", "STRING", f"('alt' || {digits(16, 7)} || '@example.org')", 50, 50),
    ("c_phone_1", "STRING", f"('1-' || {digits(17, 3)} || '-' || {digits(18, 7)})", 100, 50),
    ("c_phone_2", "STRING", f"('1-' || {digits(19, 3)} || '-' || {digits(20, 7)})", 100, 50),
    ("c_phone_3", "STRING", f"('1-' || {digits(21, 3)} || '-' || {digits(22, 7)} || '-' || {digits(23, 3)})", 100, 50),
    ("c_lcl_tx_id", "STRING", f"('L' || {digits(24, 3)})", 100, 50),
    ("c_nat_tx_id", "STRING", f"('N' || {digits(25, 3)})", 100, 50),
    ("c_status", "STRING", "'ACTV'", 100, 0),
]
ACCOUNT = [
    ("ca_c_id", "BIGINT", "c_id", 100, 100),
    ("ca_tax_st", "INT", "CASE WHEN hash(n * 64 + 26) % 10 < 7 THEN 1 WHEN hash(n * 64 + 26) % 10 < 9 THEN 2 ELSE 0 END", 100, 100),
    ("ca_b_id", "BIGINT", "(hash(n * 64 + 27) % 5000)::BIGINT", 100, 100),
    ("ca_name", "STRING", f"('Account ' || {digits(28, 6)})", 95, 95),
    ("ca_st_id", "STRING", "'ACTV'", 100, 0),
]
# Entity: key, columns, new, update, end, column of the end and what it says.
ENTITIES = {
    "customers": ("c_id", CUSTOMER, ("NEW",), "UPDCUST", "INACT", "c_status", "INAC"),
    "accounts": ("ca_id", ACCOUNT, ("NEW", "ADDACCT"), "UPDACCT", "CLOSEACCT", "ca_st_id", "CLSD"),
}


def schema(entity):
    key, columns = ENTITIES[entity][:2]
    return ", ".join(["n BIGINT", "day DATE", f"{key} BIGINT"] + [f"{name} {kind}" for name, kind, *_ in columns])


def sparse_query(entity, table):
    key, columns, new, update, end, end_column, end_value = ENTITIES[entity]
    parts = []
    for place, (name, kind, value, at_first, later) in enumerate(columns):
        says = f"WHEN action = '{end}' THEN '{end_value}' " if name == end_column else ""
        first = " OR ".join(f"action = '{one}'" for one in new)
        parts.append(f"CAST(CASE {says}WHEN ({first}) AND {share(place, at_first)} THEN {value} "
                     f"WHEN action = '{update}' AND {share(place, later)} THEN {value} END AS {kind}) AS {name}")
    kinds = ", ".join(f"'{one}'" for one in (*new, update, end))
    return (f"SELECT n, win, DATE '{BEGIN}' + (second // 86400)::INT AS day, {key}, {', '.join(parts)} "
            f"FROM {table} WHERE action IN ({kinds})")


def full_query(entity, sparse):
    key, columns = ENTITIES[entity][:2]
    kept = ", ".join(f"last_value({name} IGNORE NULLS) OVER w AS {name}" for name, *_ in columns)
    return (f"SELECT n, win, day, {key}, {kept} FROM {sparse} WINDOW w AS (PARTITION BY {key} ORDER BY n "
            "ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)")


def events(folder, scale):
    """{customers,accounts}_{sparse,full}.parquet, in the order of time. `win` is the window."""
    if scale % 2:
        raise SystemExit("the scale factor must be even")
    folder.mkdir(parents=True, exist_ok=True)
    if (folder / "done").exists():
        return
    text = folder / "actions.csv"
    with text.open("w", encoding="ascii") as out:
        for row in actions(scale):
            out.write("%d,%d,%s,%d,%s,%s\n" % row)
    connection = connect()
    connection.execute("CREATE VIEW actions AS SELECT * FROM read_csv('%s', header = false, columns = {'n': 'BIGINT', "
                       "'win': 'INT', 'action': 'VARCHAR', 'second': 'BIGINT', 'c_id': 'BIGINT', 'ca_id': 'BIGINT'})" % text)
    for entity in ENTITIES:
        sparse = folder / f"{entity}_sparse.parquet"
        connection.execute(f"COPY ({sparse_query(entity, 'actions')} ORDER BY n) TO '{sparse}' (FORMAT parquet)")
        full = full_query(entity, f"'{sparse}'")
        connection.execute(f"COPY ({full} ORDER BY n) TO '{folder}/{entity}_full.parquet' (FORMAT parquet)")
    text.unlink()
    (folder / "done").touch()
