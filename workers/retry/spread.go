package retry

// Spread returns a number in [0, 1) that is the same for the same message, attempt and seed, and uniform over messages
// and over attempts. It picks the sub-tier of a retry: messages that failed together come back apart, and a run can be
// repeated. seq serves messages without an id.
func Spread(messageID string, seq int64, attempt int, seed uint64) float64 {
	h := mix(seed ^ 0x73707265_6164)
	for i := range len(messageID) {
		h = (h ^ uint64(messageID[i])) * 0x100000001b3 // FNV-1a's step; mix below repairs its weak high bits
	}
	h = mix(h ^ uint64(seq))
	h = mix(h ^ uint64(attempt))
	return float64(h>>11) / (1 << 53)
}

// mix is the finaliser of SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014): every
// bit of the input changes half of the output's.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
