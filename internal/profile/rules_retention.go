package profile

import "time"

// RetainAll is the policy of an inbox that forgets nothing.
const RetainAll = "none"

// retentionSuffices refuses an inbox that forgets a message which may still come again: for as long as it may be retried, then
// lie in parking until somebody redrives it, or be replayed.
func retentionSuffices(j *judge) {
	r := j.Inbox.Retention
	if r.Policy == RetainAll {
		return
	}
	if j.Topology.ParkingRetention == 0 {
		j.report("inbox.retention.policy", "%s forgets messages that parking keeps for ever, and a redrive would apply them again; set topology.parking_retention", r.Policy)
		return
	}
	if least := j.Retry.MaxAge + j.Topology.ParkingRetention + r.ReplayHorizon; r.Keep <= least {
		j.report("inbox.retention.keep", "%s is not above %s, for which a message may come again: retry.max_age %s + topology.parking_retention %s + replay_horizon %s",
			durationText(r.Keep), durationText(least), durationText(j.Retry.MaxAge), durationText(j.Topology.ParkingRetention), durationText(r.ReplayHorizon))
	}
}

// maxPartitions bounds an inbox's partitions: every claim is planned against all of them.
const maxPartitions = 1000

func partitionsStayFew(j *judge) {
	r := j.Inbox.Retention
	if r.Policy == "partitions" && r.Every > 0 && r.Keep/r.Every > maxPartitions {
		j.report("inbox.retention.every", "%s makes %d partitions of the %s that are kept; at most %d are sensible, so %s or more",
			durationText(r.Every), r.Keep/r.Every, durationText(r.Keep), maxPartitions, durationText((r.Keep/maxPartitions).Round(time.Second)+time.Second))
	}
}
