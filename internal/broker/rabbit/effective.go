package rabbit

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"spillway/internal/topology"
)

const (
	// effectiveBound is how long a policy may take to show on its queues where the broker tells of it in its statistics
	// alone (RabbitMQ 3.10): these move every 5 s, and a new queue reached them after up to 13 s.
	effectiveBound = 25 * time.Second
	// freshBound is the same where the broker answers from its metadata, which a policy reaches within milliseconds.
	freshBound    = 2 * time.Second
	effectivePoll = 100 * time.Millisecond
	// differencesNamed bounds the sentence of ErrPolicyDiffers.
	differencesNamed = 6
)

// ErrPolicyDiffers is returned when the settings in effect on a queue are not the intended ones.
var ErrPolicyDiffers = errors.New("the effective settings differ from the intended ones")

// tagList reads the user's tags, a list since 3.8 and a comma-separated text in answers of some plugins.
type tagList []string

// UnmarshalJSON implements json.Unmarshaler.
func (t *tagList) UnmarshalJSON(b []byte) error {
	if bytes.HasPrefix(b, []byte(`"`)) {
		var text string
		if err := json.Unmarshal(b, &text); err != nil {
			return err
		}
		*t = strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' })
		return nil
	}
	return json.Unmarshal(b, (*[]string)(t))
}

// settings is a queue's settings as text by key, since the API mixes numbers and texts.
type settings map[string]string

// UnmarshalJSON implements json.Unmarshaler. The API writes an empty object as an empty list.
func (s *settings) UnmarshalJSON(b []byte) error {
	*s = settings{}
	if bytes.HasPrefix(bytes.TrimSpace(b), []byte("[")) {
		return nil
	}
	decoder := json.NewDecoder(bytes.NewReader(b))
	decoder.UseNumber()
	var values map[string]any
	if err := decoder.Decode(&values); err != nil {
		return err
	}
	for key, value := range values {
		(*s)[key] = fmt.Sprint(value)
	}
	return nil
}

// ignoredKeys place replicas and do not change what happens to a message. The queue type is compared on its own.
var ignoredKeys = []string{"queue-type", "quorum-initial-group-size", "quorum-target-group-size", "queue-leader-locator"}

// effective is what is in force on one queue, by source.
type effective struct {
	Type      string   `json:"type"`
	Policy    settings `json:"effective_policy_definition"`
	Arguments settings `json:"arguments"`
	late      bool     // the policy came from statistics, or not at all
}

// Effective returns the settings in force on a queue under the policy's key names. Policy and arguments are merged; where
// both set a key, the argument is returned.
func (m *Management) Effective(ctx context.Context, vhost, queue string) (map[string]string, error) {
	e, err := m.effective(ctx, vhost, queue)
	if err != nil {
		return nil, err
	}
	merged := map[string]string{}
	for _, source := range e.sources() {
		maps.Copy(merged, source)
	}
	return merged, nil
}

// effective asks without statistics first, which a new queue does not have for some seconds. Newer brokers tell the
// policy in that answer (4.3.6 does), older ones in their statistics alone (3.10.8 does).
func (m *Management) effective(ctx context.Context, vhost, queue string) (effective, error) {
	query := url.Values{"disable_stats": {"true"}, "enable_queue_totals": {"true"}}.Encode()
	var e effective
	err := m.get(ctx, path("queues", vhost, queue)+"?"+query, &e)
	if err == nil && e.Policy == nil {
		e = effective{late: true}
		err = m.get(ctx, path("queues", vhost, queue), &e)
	}
	if err != nil {
		return effective{}, fmt.Errorf("ask for the effective settings of queue %q: %w", queue, err)
	}
	return e, nil
}

// sources returns the policy's settings and the arguments' as maps of policy keys.
func (e *effective) sources() []settings {
	arguments := settings{}
	for key, value := range e.Arguments {
		if name, ok := strings.CutPrefix(key, "x-"); ok && !slices.Contains(ignoredKeys, name) {
			arguments[name] = value
		}
	}
	policy := settings{}
	for key, value := range e.Policy {
		if !slices.Contains(ignoredKeys, key) {
			policy[key] = value
		}
	}
	return []settings{policy, arguments}
}

// CheckEffective compares the settings in force on every queue of the plan with the intended ones. It waits a bounded
// time for policies to arrive, and then returns ErrPolicyDiffers with each queue, key and both values.
func (m *Management) CheckEffective(ctx context.Context, vhost string, p *topology.Plan) error {
	tick := time.NewTicker(effectivePoll)
	defer tick.Stop()
	started := time.Now()
	for {
		found, stale, err := m.differences(ctx, vhost, p)
		if err != nil || len(found) == 0 {
			return err
		}
		waited := time.Since(started)
		if waited > effectiveBound || (!stale && waited > freshBound) {
			return differencesError(found)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("compare the effective policies: %w", context.Cause(ctx))
		}
	}
}

func differencesError(found []string) error {
	more := ""
	if n := len(found) - differencesNamed; n > 0 {
		found, more = found[:differencesNamed], fmt.Sprintf("; and %d more", n)
	}
	return fmt.Errorf("%w: %s%s: remove the policy or argument that interferes, or give the queues another prefix",
		ErrPolicyDiffers, strings.Join(found, "; "), more)
}

// differences returns what differs on each queue. stale means that some answer may be behind.
func (m *Management) differences(ctx context.Context, vhost string, p *topology.Plan) (found []string, stale bool, err error) {
	for _, q := range p.Queues {
		e, err := m.effective(ctx, vhost, q.Name)
		if err != nil {
			return nil, false, err
		}
		stale = stale || e.late
		for _, d := range compare(q, e) {
			found = append(found, fmt.Sprintf("queue %q: %s", q.Name, d))
		}
	}
	return found, stale, nil
}

// compare returns the differences between intended and effective settings of one queue, sorted by key. A key that both
// policy and argument set must be right in both: which of them wins depends on the key.
func compare(q topology.Queue, e effective) []string {
	var found []string
	if e.Type != "" && e.Type != "quorum" {
		found = append(found, fmt.Sprintf("type is %q, intended \"quorum\"", e.Type))
	}
	sources := e.sources()
	keys := map[string]bool{}
	for key := range q.Intended {
		keys[key] = true
	}
	for _, s := range sources {
		for key := range s {
			keys[key] = true
		}
	}
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		found = append(found, compareKey(key, q.Intended, sources)...)
	}
	return found
}

func compareKey(key string, intended map[string]any, sources []settings) []string {
	want, wanted := intended[key]
	seen := false
	var found []string
	for _, s := range sources {
		have, ok := s[key]
		if !ok {
			continue
		}
		seen = true
		switch {
		case !wanted:
			found = append(found, fmt.Sprintf("%s is %q, intended is none", key, have))
		case have != fmt.Sprint(want):
			found = append(found, fmt.Sprintf("%s is %q, intended %q", key, have, fmt.Sprint(want)))
		}
	}
	if wanted && !seen {
		found = append(found, fmt.Sprintf("%s is not set, intended %q", key, fmt.Sprint(want)))
	}
	return found
}
