/* SPDX-License-Identifier: MIT */
/* suites.c - see suites.h; the letters are in calls.c. */
#include "suites.h"

const struct suite suites[] = {
    {"sem",
     "1",
     {"d1", "d2", "t1", "u1", "u2", "D1", "c1"},
     "d0 d1 d1 d2 d3 D1 D2 t0 t1 t2 u0 u1 u1 u2 u3 w0 w0 a1 a-1 a-2 r1 r2 c1 "
     "C1 e1 e2 e9 x0 x0 s0 z1 y0 p0"},
    {"sem_limit",
     "b2",
     {"d1", "d3", "u1", "l1", "l3", "k0", "D1"},
     "d1 d1 d2 d3 D1 D2 t1 t2 u1 u1 u2 w0 a1 a-1 l0 l1 l2 l3 l4 r1 k0 c1 C1 e1 "
     "e2 x0 s0 z1 y0"},
    {"sem_available",
     "0",
     {"d1", "d2", "w0", "u1", "D1", "r1", "k0"},
     "d1 d2 w0 w0 w0 u1 u2 a1 a-1 D1 r1 r2 k0 e1 x0 c1 C1 z1"},
    {"mutex",
     "0",
     {"L0", "T0", "U0", "M1", "z1", "c1", "e1"},
     "L0 L0 T0 U0 U0 U0 M1 M2 z1 z2 c1 C1 e1 e2 e9 x0 s0 y0 p0"},
    {"waitgroup",
     "0",
     {"A1", "N0", "W0", "V1", "A2", "c1", "A-2"},
     "A1 A1 A2 A3 N0 N0 A-1 A-2 A0 W0 W0 V1 V2 c1 C1 e1 e2 x0 s0 z1 y0 p0"},
    {"scope",
     "0",
     {"e0", "e1", "x0", "s0", "O1", "S2", "z1"},
     "e0 e1 e2 e3 e9 x0 x0 n0 n1 s0 s0 s0 C0 C1 C2 O1 O1 O2 c1 c2 z0 z1 z2 z3 "
     "S1 S2 "
     "y0 p0 d1 u1"},
    {"group",
     "1",
     {"g0", "G1", "G2", "q0", "i1", "h1", "c1"},
     "g0 g0 G0 G1 G1 G2 G3 G4 G5 q0 q0 i1 i2 h0 h1 c1 C1 O1 e1 e2 e9 x0 s0 z1 "
     "d1 u1 y0"},
    {"group_limit",
     "1/g0,i1/",
     {"G1", "G6", "q0", "I2", "h1", "c1", "s0"},
     "g0 g0 i1 i1 i2 G0 G1 G1 G2 G4 G5 G6 q0 I1 I2 h1 c1 s0 e1 x0 z1"},
    {"descriptor",
     "0",
     {"f0", "F0", "v0", "X0", "Y0", "e1", "c1"},
     "f0 f0 f0 F0 F0 v0 X0 Y0 e1 e2 x0 c1 C1 s0 z1 y0"},
    {"offload",
     "0",
     {"o0", "o0", "j1", "j0", "e1", "c1", "s0"},
     "o0 o0 o0 j1 j1 j2 j3 e1 e2 x0 c1 C1 s0 z1 y0"},
    {"sem_mutex",
     "1",
     {"d1", "u1", "L0", "U0", "M1", "D1", "c1"},
     "d1 d2 u1 u2 L0 U0 M1 M2 D1 c1 C1 e1 e2 x0 s0 z1 y0 T0 t1"},
    {"waitgroup_scope",
     "0",
     {"A1", "N0", "W0", "e1", "n0", "s0", "C1"},
     "A1 N0 W0 V1 e1 e2 e9 x0 n0 s0 C1 O1 c1 z1"},
    {"all",
     "1",
     {"d1", "u1", "g0", "G3", "q0", "e1", "c1"},
     "d1 d2 D1 t1 u1 u2 w0 a1 a-1 l1 r1 L0 T0 U0 M1 M2 A1 A2 N0 W0 V1 e0 e1 e2 "
     "e9 x0 x0 n0 s0 C1 C2 O1 c1 z1 z2 S1 y0 p0 g0 G1 G2 G3 G4 q0 h1 i1"},
    {"await",
     "0",
     {"b0", "B2", "J0", "K1", "P0", "H0", "m1"},
     "b0 b1 b1 b2 b3 b4 b5 b6 b7 B0 B1 B1 B2 B5 B6 E1 E2 E4 E5 J0 J0 J0 J1 J1 "
     "J2 J10 J11 J20 J30 J40 K0 K1 K11 P0 P0 P1 P10 P20 Q0 Q1 H0 H1 H11 H20 "
     "H30 m0 m1 m20 R0 R1 R10 R20 c1 C1 e1 x0 s0 z1 u1 g0 q0"},
    {"await_all",
     "0",
     {"b0", "B2", "P0", "P1", "P20", "c1", "R0"},
     "b0 b1 b2 b4 b6 b7 B0 B1 B1 B2 B3 B6 P0 P0 P1 P2 P10 P11 P20 P21 P30 P31 "
     "P40 Q0 Q0 Q1 Q11 Q20 Q31 R0 R1 R20 R40 J0 J1 J10 K1 m0 H1 c1 C1 e1 e2 x0 "
     "s0 u1 z1 y0"},
    {"post",
     "0",
     {"Z0", "Z2", "d1", "u1", "D1", "c1", "k0"},
     "Z0 Z1 Z1 Z2 Z3 Z4 Z5 Z7 b0 b1 B1 J0 J1 m0 o0 j1 j1 c1 e1 x0 d1 u1 u1 z1 "
     "y0 L0 U0"},
};

const size_t suites_count = sizeof(suites) / sizeof(suites[0]);
