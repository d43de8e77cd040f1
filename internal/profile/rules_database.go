package profile

import (
	"fmt"
	"strings"
)

// publishingNeedsDatabase refuses every way of publishing that writes orders, in a run without a database.
func publishingNeedsDatabase(j *judge) {
	if !j.NeedsDatabase() && j.Publish.Mode != "direct" {
		j.report("publish.mode", "%s writes orders, but with inbox.strategy none the run has no database; want direct", j.Publish.Mode)
	}
}

// databaseFaults starts the names of the faults that break the database.
const databaseFaults = "postgres."

func faultsNeedDatabase(j *judge) {
	if j.NeedsDatabase() {
		return
	}
	for i, f := range j.Faults {
		if strings.HasPrefix(f.Kind, databaseFaults) {
			j.report(fmt.Sprintf("faults.%d.kind", i), "%s breaks the database, but with inbox.strategy none the run has none", f.Kind)
		}
		if f.Target == TargetDatabase {
			j.report(fmt.Sprintf("faults.%d.target", i), "is the database, but with inbox.strategy none the run has none")
		}
	}
}
