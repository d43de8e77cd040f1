package envelope

import (
	"encoding/hex"
	"strings"
	"testing"
)

func FuzzADerivedUUIDIsTheDerivedID(f *testing.F) {
	f.Add("018f0000-0000-7000-8000-0000000000ff", "stock.refused")
	f.Add("ffffffff-ffff-ffff-ffff-ffffffffffff", "")
	f.Fuzz(func(t *testing.T, text, eventType string) {
		id, ok := ParseUUID(text)
		if _, _, known := parseUUID(text); ok != known {
			t.Fatalf("ParseUUID(%q) says %v", text, ok)
		}
		if !ok {
			return
		}
		if got := hex.EncodeToString(id[:]); got != strings.ReplaceAll(text, "-", "") {
			t.Errorf("%q was read as %s", text, got)
		}
		derived := id.Derived(eventType)
		if got, want := hex.EncodeToString(derived[:]), strings.ReplaceAll(DerivedID(text, eventType), "-", ""); got != want {
			t.Errorf("derived %s, want %s", got, want)
		}
	})
}

func TestADerivedUUIDTakesNoMemory(t *testing.T) { //nolint:paralleltest // allocations of the whole process are counted
	id, _ := ParseUUID("018f0000-0000-7000-8000-0000000000ff")
	if n := testing.AllocsPerRun(100, func() { id.Derived("stock.refused") }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
