package envelope_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"spillway/internal/envelope"
)

// moment is any instant with a fraction of a millisecond.
var moment = time.Date(2026, 3, 4, 5, 6, 7, 891234567, time.UTC)

func TestAnIDGivesItsInstanceAndSequenceBack(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]envelope.Identity{
		"the first of all":             {Run: "r", Instance: 0, Seq: 0},
		"an ordinary one":              {Run: "r", Instance: 3, Seq: 123_456},
		"the largest of each":          {Run: "r", Instance: envelope.MaxInstance, Seq: envelope.MaxSeq},
		"a sequence of one bit, high":  {Run: "r", Instance: 0, Seq: 1 << 39},
		"an instance of one bit, high": {Run: "r", Instance: 1 << 11, Seq: 0},
		"a run whose hash is long":     {Run: strings.Repeat("run", 100), Instance: 1, Seq: 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			instance, seq, err := envelope.ParseMessageID(want.MessageID(moment))
			if err != nil || instance != want.Instance || seq != want.Seq {
				t.Fatalf("got instance %d, seq %d, %v; want %d, %d", instance, seq, err, want.Instance, want.Seq)
			}
		})
	}
}

// TestAnIDIsPinned holds the layout: ids in stored inboxes and results must stay readable.
func TestAnIDIsPinned(t *testing.T) {
	t.Parallel()
	got := envelope.Identity{Run: "r", Instance: 0xabc, Seq: 0x12_3456_789a}.MessageID(time.UnixMilli(0x0123_4567_89ab))
	if want := "01234567-89ab-7abc-8"; !strings.HasPrefix(got, want) {
		t.Errorf("%s does not begin with the milliseconds, version 7, the instance and the variant: %s", got, want)
	}
	if want := "123456789a"; !strings.HasSuffix(got, want) {
		t.Errorf("%s does not end in the sequence, %s", got, want)
	}
}

func TestIDsOfOneMessageAreEqualAndOfDifferentMessagesAreNot(t *testing.T) {
	t.Parallel()
	one := envelope.Identity{Run: "a", Instance: 1, Seq: 1}
	if first, again := one.MessageID(moment), one.MessageID(moment); first != again {
		t.Error("the id of one message changes")
	}
	seen := map[string]envelope.Identity{}
	for _, run := range []string{"a", "b"} {
		for instance := range 3 {
			for seq := range int64(100) {
				identity := envelope.Identity{Run: run, Instance: instance, Seq: seq}
				id := identity.MessageID(moment)
				if other, taken := seen[id]; taken {
					t.Fatalf("%+v and %+v share the id %s", identity, other, id)
				}
				seen[id] = identity
			}
		}
	}
}

func TestIDsSortByTime(t *testing.T) {
	t.Parallel()
	var ids []string
	for i := range 50 { // sequence and instance fall while time rises
		identity := envelope.Identity{Run: "r", Instance: 50 - i, Seq: int64(1000 - i)}
		ids = append(ids, identity.MessageID(moment.Add(time.Duration(i)*time.Millisecond)))
	}
	if !slices.IsSorted(ids) {
		t.Errorf("not in the order of their time: %v", ids)
	}
}

func TestTextThatIsNoMessageIDIsRefused(t *testing.T) {
	t.Parallel()
	good := envelope.Identity{Run: "r", Seq: 7}.MessageID(moment)
	for name, id := range map[string]string{
		"nothing":                "",
		"too short":              good[:35],
		"too long":               good + "0",
		"a letter beyond f":      "g" + good[1:],
		"capitals":               "ABCDEF01" + good[8:],
		"a dash too many":        "-" + good[1:],
		"a dash too few":         good[:8] + "0" + good[9:],
		"version 4":              good[:14] + "4" + good[15:],
		"a derived id":           envelope.DerivedID(good, "t"),
		"another variant":        good[:19] + "c" + good[20:],
		"bytes that are no text": strings.Repeat("\xff", 36),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if instance, seq, err := envelope.ParseMessageID(id); !errors.Is(err, envelope.ErrBadID) {
				t.Errorf("%q was read as instance %d, seq %d, %v", id, instance, seq, err)
			}
		})
	}
}

func TestADerivedIDIsStableAndDistinct(t *testing.T) {
	t.Parallel()
	const cause = "01234567-89ab-7abc-8000-00000000002a"
	got := envelope.DerivedID(cause, "stock.refused")
	if want := "9e60a671-51fc-8c11-911e-f82140e4a19b"; got != want {
		t.Errorf("the derived id is %s, want %s: ids in stored outboxes must not change", got, want)
	}
	if len(got) != 36 || got[14] != '8' || !strings.ContainsRune("89ab", rune(got[19])) {
		t.Errorf("%s is no UUID of version 8", got)
	}
	seen := map[string]bool{cause: true}
	for _, pair := range [][2]string{
		{cause, "stock.refused"}, {cause, "stock.reserved"}, {cause[:35] + "b", "stock.refused"}, {cause, ""}, {"", cause},
		{"ab", "c"}, {"a", "bc"},
	} {
		id := envelope.DerivedID(pair[0], pair[1])
		if seen[id] {
			t.Errorf("the id derived from %q is taken", pair)
		}
		seen[id] = true
	}
}

func FuzzParseMessageID(f *testing.F) {
	f.Add(envelope.Identity{Run: "r", Instance: 4095, Seq: envelope.MaxSeq}.MessageID(moment))
	f.Add(envelope.DerivedID("a", "b"))
	f.Add("01234567-89ab-7abc-8000-0000000000-a")
	f.Add("")
	f.Fuzz(func(t *testing.T, id string) {
		instance, seq, err := envelope.ParseMessageID(id)
		if err != nil {
			if !errors.Is(err, envelope.ErrBadID) {
				t.Fatalf("%q: an error of another kind: %v", id, err)
			}
			return
		}
		if instance < 0 || instance > envelope.MaxInstance || seq < 0 || seq > envelope.MaxSeq {
			t.Fatalf("%q: instance %d, seq %d are out of range", id, instance, seq)
		}
		// What was read must be what an id of it says in the same places.
		again := envelope.Identity{Instance: instance, Seq: seq}.MessageID(time.UnixMilli(0))
		if again[15:18] != id[15:18] || again[26:] != id[26:] {
			t.Fatalf("%q was read as instance %d, seq %d, whose id is %q", id, instance, seq, again)
		}
	})
}
