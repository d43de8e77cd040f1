package service

// Salts keep the draws of one message apart: whether it fails must not depend on how long it takes.
const (
	saltTime    = 0x73657276_69636574
	saltMessage = 0x6d657373_61676566
	saltAttempt = 0x61747465_6d707466
)

// uniform returns a number in (0, 1), both ends excluded, since logarithms and the inverse of the error function are
// infinite there. It is the same for the same arguments and independent between different ones.
func uniform(seed, salt uint64, seq int64, attempt int) float64 {
	h := mix(mix(mix(seed^salt)^uint64(seq)) ^ uint64(attempt))
	return (float64(h>>12) + 0.5) / (1 << 52)
}

// mix is the finaliser of SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014): every
// bit of the input changes half of the output's. The retry package has its own copy, as both are leaves.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
