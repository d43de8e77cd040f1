package profile

import (
	"fmt"
	"strings"
)

// Points of workers.ack.
const (
	AckAfterCommit  = "after-commit"
	AckBeforeCommit = "before-commit"
	AckOnDelivery   = "on-delivery"
	AckAuto         = "auto"
)

// Points of workers.kill.
const (
	PointBeforeCommit = "before-commit"
	PointAfterCommit  = "after-commit"
	PointAfterRetry   = "after-retry"
)

// strategyWithCommit is the inbox strategy in which there is a moment between the effect and the COMMIT.
const strategyWithCommit = "transaction"

// ackFits refuses an ack before a COMMIT that the inbox does not show.
func ackFits(j *judge) {
	if j.Workers.Ack == AckBeforeCommit && j.Inbox.Strategy != strategyWithCommit {
		j.report("workers.ack", "before-commit needs inbox.strategy %s; with %s effect and COMMIT travel together", strategyWithCommit, j.Inbox.Strategy)
	}
}

// processesFit refuses faults that need worker processes where there are none, and those that cannot reach into them.
func processesFit(j *judge) {
	for i, f := range j.Faults {
		path := fmt.Sprintf("faults.%d", i)
		ofProcesses := f.Kind == FaultWorkersKill || f.Kind == FaultWorkersFreeze
		switch {
		case !j.sound(path):
		case ofProcesses && j.Workers.Processes == 0:
			j.report(path+".kind", "%s is done to a process of workers; set workers.processes to 1 or more", f.Kind)
		case f.Kind == FaultWorkersKill && f.Point == PointBeforeCommit && j.Inbox.Strategy != strategyWithCommit:
			j.report(path+".point", "before-commit needs inbox.strategy %s; with %s effect and COMMIT travel together", strategyWithCommit, j.Inbox.Strategy)
		case j.Workers.Processes > 0 && (f.Kind == FaultPoolSqueeze || strings.HasPrefix(f.Kind, "network.")):
			j.report(path+".kind", "%s does not reach workers in processes of their own; set workers.processes to 0", f.Kind)
		}
	}
}
