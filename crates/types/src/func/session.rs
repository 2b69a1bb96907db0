//! Functions whose bodies the executor or the session has, because they need the session, the
//! transaction or the catalog. Each has a number: calls find their body by it, names are looked at when
//! the table of functions is made. A name here is a promise that the function runs or that an error says
//! that it isn't supported.

/// Makes the functions, by family, of their names in `table/functions.txt` (or of the key of the body, where
/// others of that name need no session).
macro_rules! session_functions {
    ($($(#[$doc:meta])* $family:ident { $($variant:ident $name:literal,)* })*) => {
        /// A function that needs the session, the transaction or the catalog.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u16)]
        pub enum SessionFunction {
            $($(#[doc = $name] $variant,)*)*
        }

        /// Which part of the executor or of the session has the body.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Family {
            $($(#[$doc])* $family,)*
        }

        impl SessionFunction {
            /// Its name.
            pub fn name(self) -> &'static str {
                match self {
                    $($(SessionFunction::$variant => $name,)*)*
                }
            }

            /// Its family.
            pub fn family(self) -> Family {
                match self {
                    $($(SessionFunction::$variant)|* => Family::$family,)*
                }
            }

            /// The function with this name.
            pub fn named(name: &str) -> Option<SessionFunction> {
                match name {
                    $($($name => Some(SessionFunction::$variant),)*)*
                    _ => None,
                }
            }
        }
    };
}

session_functions! {
    /// Time, randomness, sleep.
    Clock {
        ClockTimestamp "clock_timestamp",
        GenRandomUuid "gen_random_uuid",
        Now "now",
        PgSleep "pg_sleep",
        PgSleepFor "pg_sleep_for",
        PgSleepUntil "pg_sleep_until",
        PgTriggerDepth "pg_trigger_depth",
        Random "random",
        StatementTimestamp "statement_timestamp",
        TransactionTimestamp "transaction_timestamp",
    }
    /// Advisory locks.
    Locks {
        PgAdvisoryLock "pg_advisory_lock",
        PgAdvisoryLockShared "pg_advisory_lock_shared",
        PgAdvisoryUnlock "pg_advisory_unlock",
        PgAdvisoryUnlockAll "pg_advisory_unlock_all",
        PgAdvisoryUnlockShared "pg_advisory_unlock_shared",
        PgAdvisoryXactLock "pg_advisory_xact_lock",
        PgAdvisoryXactLockShared "pg_advisory_xact_lock_shared",
        PgTryAdvisoryLock "pg_try_advisory_lock",
        PgTryAdvisoryLockShared "pg_try_advisory_lock_shared",
        PgTryAdvisoryXactLock "pg_try_advisory_xact_lock",
        PgTryAdvisoryXactLockShared "pg_try_advisory_xact_lock_shared",
    }
    /// Sequences.
    Sequence {
        Currval "currval",
        Lastval "lastval",
        Nextval "nextval",
        PgGetSerialSequence "pg_get_serial_sequence",
        PgSequenceLastValue "pg_sequence_last_value",
        Setval "setval",
    }
    /// Large objects.
    LargeObject {
        LoClose "lo_close",
        LoCreat "lo_creat",
        LoCreate "lo_create",
        LoExport "lo_export",
        LoFromBytea "lo_from_bytea",
        LoGet "lo_get",
        LoImport "lo_import",
        LoLseek "lo_lseek",
        LoLseek64 "lo_lseek64",
        LoOpen "lo_open",
        LoPut "lo_put",
        LoTell "lo_tell",
        LoTell64 "lo_tell64",
        LoTruncate "lo_truncate",
        LoTruncate64 "lo_truncate64",
        LoUnlink "lo_unlink",
        Loread "loread",
        Lowrite "lowrite",
    }
    /// Objects of the catalog: addresses, files, access items.
    Objects {
        Aclexplode "aclexplode",
        BrinDesummarizeRange "brin_desummarize_range",
        BrinSummarizeNewValues "brin_summarize_new_values",
        BrinSummarizeRange "brin_summarize_range",
        GinCleanPendingList "gin_clean_pending_list",
        PgCurrentLogfile "pg_current_logfile",
        PgDatabaseCollationActualVersion "pg_database_collation_actual_version",
        PgDescribeObject "pg_describe_object",
        PgExtensionConfigDump "pg_extension_config_dump",
        PgExtensionUpdatePaths "pg_extension_update_paths",
        PgFilenodeRelation "pg_filenode_relation",
        PgGetCatalogForeignKeys "pg_get_catalog_foreign_keys",
        PgGetMultixactMembers "pg_get_multixact_members",
        PgGetObjectAddress "pg_get_object_address",
        PgGetPublicationTables "pg_get_publication_tables",
        PgGetReplicaIdentityIndex "pg_get_replica_identity_index",
        PgGetRuledef "pg_get_ruledef",
        PgGetStatisticsobjdefExpressions "pg_get_statisticsobjdef_expressions",
        PgIdentifyObject "pg_identify_object",
        PgIdentifyObjectAsAddress "pg_identify_object_as_address",
        PgIndexColumnHasProperty "pg_index_column_has_property",
        PgIndexHasProperty "pg_index_has_property",
        PgIndexamHasProperty "pg_indexam_has_property",
        PgJitAvailable "pg_jit_available",
        PgLastCommittedXact "pg_last_committed_xact",
        PgPreparedXact "pg_prepared_xact",
        PgRelationFilepath "pg_relation_filepath",
        PgSequenceParameters "pg_sequence_parameters",
        PgSettingsGetFlags "pg_settings_get_flags",
        PgTablespaceDatabases "pg_tablespace_databases",
        PgTablespaceSize "pg_tablespace_size",
        PgXactCommitTimestamp "pg_xact_commit_timestamp",
        PgXactCommitTimestampOrigin "pg_xact_commit_timestamp_origin",
    }
    /// Logical decoding, replication slots and origins.
    Replication {
        PgCreateLogicalReplicationSlot "pg_create_logical_replication_slot",
        PgCreatePhysicalReplicationSlot "pg_create_physical_replication_slot",
        PgDropReplicationSlot "pg_drop_replication_slot",
        PgLogicalEmitMessage "pg_logical_emit_message",
        PgLogicalSlotGetBinaryChanges "pg_logical_slot_get_binary_changes",
        PgLogicalSlotGetChanges "pg_logical_slot_get_changes",
        PgLogicalSlotPeekBinaryChanges "pg_logical_slot_peek_binary_changes",
        PgLogicalSlotPeekChanges "pg_logical_slot_peek_changes",
        PgReplicationOriginAdvance "pg_replication_origin_advance",
        PgReplicationOriginCreate "pg_replication_origin_create",
        PgReplicationOriginDrop "pg_replication_origin_drop",
        PgReplicationOriginOid "pg_replication_origin_oid",
        PgReplicationOriginProgress "pg_replication_origin_progress",
        PgReplicationOriginSessionIsSetup "pg_replication_origin_session_is_setup",
        PgReplicationOriginSessionProgress "pg_replication_origin_session_progress",
        PgReplicationOriginSessionReset "pg_replication_origin_session_reset",
        PgReplicationOriginSessionSetup "pg_replication_origin_session_setup",
        PgReplicationOriginXactReset "pg_replication_origin_xact_reset",
        PgReplicationOriginXactSetup "pg_replication_origin_xact_setup",
        PgReplicationSlotAdvance "pg_replication_slot_advance",
    }
    /// Files of the server.
    Files {
        PgLsArchiveStatusdir "pg_ls_archive_statusdir",
        PgLsDir "pg_ls_dir",
        PgLsLogdir "pg_ls_logdir",
        PgLsLogicalmapdir "pg_ls_logicalmapdir",
        PgLsLogicalsnapdir "pg_ls_logicalsnapdir",
        PgLsTmpdir "pg_ls_tmpdir",
        PgReadBinaryFile "pg_read_binary_file",
        PgReadFile "pg_read_file",
        PgReadFileOld "pg_read_file_old",
        PgStatFile "pg_stat_file",
    }
    /// Partitions.
    Partition {
        PgGetPartitionConstraintdef "pg_get_partition_constraintdef",
        PgGetPartkeydef "pg_get_partkeydef",
        PgMaintainPartitions "pg_maintain_partitions",
        PgPartitionAncestors "pg_partition_ancestors",
        PgPartitionRoot "pg_partition_root",
        PgPartitionTree "pg_partition_tree",
        PgStepPartitions "pg_step_partitions",
        SatisfiesHashPartition "satisfies_hash_partition",
    }
    /// Definitions as text, comments, sizes.
    Definition {
        ColDescription "col_description",
        FormatType "format_type",
        ObjDescription "obj_description",
        PgColumnIsUpdatable "pg_column_is_updatable",
        PgDatabaseSize "pg_database_size",
        PgGetConstraintdef "pg_get_constraintdef",
        PgGetExpr "pg_get_expr",
        PgGetFunctionArgDefault "pg_get_function_arg_default",
        PgGetFunctionArguments "pg_get_function_arguments",
        PgGetFunctionIdentityArguments "pg_get_function_identity_arguments",
        PgGetFunctionResult "pg_get_function_result",
        PgGetFunctionSqlbody "pg_get_function_sqlbody",
        PgGetFunctiondef "pg_get_functiondef",
        PgGetIndexdef "pg_get_indexdef",
        PgGetStatisticsobjdef "pg_get_statisticsobjdef",
        PgGetStatisticsobjdefColumns "pg_get_statisticsobjdef_columns",
        PgGetTriggerdef "pg_get_triggerdef",
        PgGetUserbyid "pg_get_userbyid",
        PgGetViewdef "pg_get_viewdef",
        PgIndexesSize "pg_indexes_size",
        PgRelationFilenode "pg_relation_filenode",
        PgRelationIsPublishable "pg_relation_is_publishable",
        PgRelationIsUpdatable "pg_relation_is_updatable",
        PgRelationSize "pg_relation_size",
        PgSizePretty "pg_size_pretty",
        PgTableSize "pg_table_size",
        PgTablespaceLocation "pg_tablespace_location",
        PgTotalRelationSize "pg_total_relation_size",
        ShobjDescription "shobj_description",
    }
    /// Names and visibility.
    Names {
        PgCollationActualVersion "pg_collation_actual_version",
        PgCollationIsVisible "pg_collation_is_visible",
        PgConversionIsVisible "pg_conversion_is_visible",
        PgFunctionIsVisible "pg_function_is_visible",
        PgOpclassIsVisible "pg_opclass_is_visible",
        PgOperatorIsVisible "pg_operator_is_visible",
        PgOpfamilyIsVisible "pg_opfamily_is_visible",
        PgStatisticsObjIsVisible "pg_statistics_obj_is_visible",
        PgTableIsVisible "pg_table_is_visible",
        PgTsConfigIsVisible "pg_ts_config_is_visible",
        PgTsDictIsVisible "pg_ts_dict_is_visible",
        PgTsParserIsVisible "pg_ts_parser_is_visible",
        PgTsTemplateIsVisible "pg_ts_template_is_visible",
        PgTypeIsVisible "pg_type_is_visible",
        Regclass "regclass",
        ToRegclass "to_regclass",
        ToRegcollation "to_regcollation",
        ToRegnamespace "to_regnamespace",
        ToRegoper "to_regoper",
        ToRegoperator "to_regoperator",
        ToRegproc "to_regproc",
        ToRegprocedure "to_regprocedure",
        ToRegrole "to_regrole",
        ToRegtype "to_regtype",
    }
    /// Privileges.
    Rights {
        Aclcontains "aclcontains",
        Acldefault "acldefault",
        HasAnyColumnPrivilege "has_any_column_privilege",
        HasColumnPrivilege "has_column_privilege",
        HasDatabasePrivilege "has_database_privilege",
        HasForeignDataWrapperPrivilege "has_foreign_data_wrapper_privilege",
        HasFunctionPrivilege "has_function_privilege",
        HasLanguagePrivilege "has_language_privilege",
        HasParameterPrivilege "has_parameter_privilege",
        HasSchemaPrivilege "has_schema_privilege",
        HasSequencePrivilege "has_sequence_privilege",
        HasServerPrivilege "has_server_privilege",
        HasTablePrivilege "has_table_privilege",
        HasTablespacePrivilege "has_tablespace_privilege",
        HasTypePrivilege "has_type_privilege",
        Makeaclitem "makeaclitem",
        PgHasRole "pg_has_role",
        RowSecurityActive "row_security_active",
    }
    /// Functions that only event triggers may call.
    EventTrigger {
        PgEventTriggerTableRewriteOid "pg_event_trigger_table_rewrite_oid",
        PgEventTriggerTableRewriteReason "pg_event_trigger_table_rewrite_reason",
    }
    /// Functions of text search that run queries.
    TextSearch {
        TsStat "ts_stat",
        TsqueryRewriteQuery "tsquery_rewrite_query",
    }
    /// Values of the session and functions without a family.
    Plain {
        CurrentDatabase "current_database",
        CurrentSchema "current_schema",
        CurrentSchemas "current_schemas",
        CurrentUser "current_user",
        Getdatabaseencoding "getdatabaseencoding",
        PgCharToEncoding "pg_char_to_encoding",
        PgClientEncoding "pg_client_encoding",
        PgColumnSize "pg_column_size",
        PgCurrentWalFlushLsn "pg_current_wal_flush_lsn",
        PgCurrentWalInsertLsn "pg_current_wal_insert_lsn",
        PgCurrentWalLsn "pg_current_wal_lsn",
        PgCurrentSnapshot "pg_current_snapshot",
        PgCurrentXactId "pg_current_xact_id",
        PgCurrentXactIdIfAssigned "pg_current_xact_id_if_assigned",
        PgEncodingToChar "pg_encoding_to_char",
        PgIsInRecovery "pg_is_in_recovery",
        PgIsOtherTempSchema "pg_is_other_temp_schema",
        PgMyTempSchema "pg_my_temp_schema",
        PgXactStatus "pg_xact_status",
        SessionUser "session_user",
        TxidCurrent "txid_current",
        TxidCurrentIfAssigned "txid_current_if_assigned",
        Version "version",
    }
    /// Functions that the binder makes of syntax.
    Statement {
        CurrentOf "current_of",
        DomainCheck "domain_check",
        NextValue "next_value",
    }
    /// Functions that the session itself answers.
    Server {
        CurrentSetting "current_setting",
        InetClientAddr "inet_client_addr",
        InetClientPort "inet_client_port",
        InetServerAddr "inet_server_addr",
        InetServerPort "inet_server_port",
        PgAutonomous "pg_autonomous",
        CurrentQuery "current_query",
        PgBackendPid "pg_backend_pid",
        PgBlockingPids "pg_blocking_pids",
        PgCancelBackend "pg_cancel_backend",
        PgCatalogXmin "pg_catalog_xmin",
        PgConfLoadTime "pg_conf_load_time",
        PgExportSnapshot "pg_export_snapshot",
        PgFlamegraph "pg_flamegraph",
        PgIsolationTestSessionIsBlocked "pg_isolation_test_session_is_blocked",
        PgListeningChannels "pg_listening_channels",
        PgNotificationQueueUsage "pg_notification_queue_usage",
        PgNotify "pg_notify",
        PgPostmasterStartTime "pg_postmaster_start_time",
        PgReloadConf "pg_reload_conf",
        PgSafeSnapshotBlockingPids "pg_safe_snapshot_blocking_pids",
        PgServerStatus "pg_server_status",
        PgStacks "pg_stacks",
        PgStatWaitReset "pg_stat_wait_reset",
        PgStatWaitTrace "pg_stat_wait_trace",
        PgTerminateBackend "pg_terminate_backend",
        PgWaitSamplingResetProfile "pg_wait_sampling_reset_profile",
        SetConfig "set_config",
        XidAge "xid_age",
    }
    /// The server's past, which returns rows.
    History {
        PgCompareStatements "pg_compare_statements",
        PgTopClients "pg_top_clients",
        PgTopRelations "pg_top_relations",
        PgTopStatements "pg_top_statements",
        PgWaitHistory "pg_wait_history",
        PgWhy "pg_why",
    }
    /// The statistics system.
    Statistics {
        MxidAge "mxid_age",
        PgStatClearSnapshot "pg_stat_clear_snapshot",
        PgStatForceNextFlush "pg_stat_force_next_flush",
        PgStatGetAnalyzeCount "pg_stat_get_analyze_count",
        PgStatGetAutoanalyzeCount "pg_stat_get_autoanalyze_count",
        PgStatGetAutovacuumCount "pg_stat_get_autovacuum_count",
        PgStatGetBackendActivity "pg_stat_get_backend_activity",
        PgStatGetBackendActivityStart "pg_stat_get_backend_activity_start",
        PgStatGetBackendClientAddr "pg_stat_get_backend_client_addr",
        PgStatGetBackendClientPort "pg_stat_get_backend_client_port",
        PgStatGetBackendDbid "pg_stat_get_backend_dbid",
        PgStatGetBackendIdset "pg_stat_get_backend_idset",
        PgStatGetBackendPid "pg_stat_get_backend_pid",
        PgStatGetBackendStart "pg_stat_get_backend_start",
        PgStatGetBackendUserid "pg_stat_get_backend_userid",
        PgStatGetBackendWaitEvent "pg_stat_get_backend_wait_event",
        PgStatGetBackendWaitEventType "pg_stat_get_backend_wait_event_type",
        PgStatGetBackendXactStart "pg_stat_get_backend_xact_start",
        PgStatGetBgwriterBufWrittenCheckpoints "pg_stat_get_bgwriter_buf_written_checkpoints",
        PgStatGetBgwriterBufWrittenClean "pg_stat_get_bgwriter_buf_written_clean",
        PgStatGetBgwriterMaxwrittenClean "pg_stat_get_bgwriter_maxwritten_clean",
        PgStatGetBgwriterRequestedCheckpoints "pg_stat_get_bgwriter_requested_checkpoints",
        PgStatGetBgwriterStatResetTime "pg_stat_get_bgwriter_stat_reset_time",
        PgStatGetBgwriterTimedCheckpoints "pg_stat_get_bgwriter_timed_checkpoints",
        PgStatGetBlocksFetched "pg_stat_get_blocks_fetched",
        PgStatGetBlocksHit "pg_stat_get_blocks_hit",
        PgStatGetBufAlloc "pg_stat_get_buf_alloc",
        PgStatGetBufFsyncBackend "pg_stat_get_buf_fsync_backend",
        PgStatGetBufWrittenBackend "pg_stat_get_buf_written_backend",
        PgStatGetCheckpointSyncTime "pg_stat_get_checkpoint_sync_time",
        PgStatGetCheckpointWriteTime "pg_stat_get_checkpoint_write_time",
        PgStatGetDbActiveTime "pg_stat_get_db_active_time",
        PgStatGetDbBlkReadTime "pg_stat_get_db_blk_read_time",
        PgStatGetDbBlkWriteTime "pg_stat_get_db_blk_write_time",
        PgStatGetDbBlocksFetched "pg_stat_get_db_blocks_fetched",
        PgStatGetDbBlocksHit "pg_stat_get_db_blocks_hit",
        PgStatGetDbChecksumFailures "pg_stat_get_db_checksum_failures",
        PgStatGetDbChecksumLastFailure "pg_stat_get_db_checksum_last_failure",
        PgStatGetDbConflictAll "pg_stat_get_db_conflict_all",
        PgStatGetDbConflictBufferpin "pg_stat_get_db_conflict_bufferpin",
        PgStatGetDbConflictLock "pg_stat_get_db_conflict_lock",
        PgStatGetDbConflictSnapshot "pg_stat_get_db_conflict_snapshot",
        PgStatGetDbConflictStartupDeadlock "pg_stat_get_db_conflict_startup_deadlock",
        PgStatGetDbConflictTablespace "pg_stat_get_db_conflict_tablespace",
        PgStatGetDbDeadlocks "pg_stat_get_db_deadlocks",
        PgStatGetDbIdleInTransactionTime "pg_stat_get_db_idle_in_transaction_time",
        PgStatGetDbNumbackends "pg_stat_get_db_numbackends",
        PgStatGetDbSessionTime "pg_stat_get_db_session_time",
        PgStatGetDbSessions "pg_stat_get_db_sessions",
        PgStatGetDbSessionsAbandoned "pg_stat_get_db_sessions_abandoned",
        PgStatGetDbSessionsFatal "pg_stat_get_db_sessions_fatal",
        PgStatGetDbSessionsKilled "pg_stat_get_db_sessions_killed",
        PgStatGetDbStatResetTime "pg_stat_get_db_stat_reset_time",
        PgStatGetDbTempBytes "pg_stat_get_db_temp_bytes",
        PgStatGetDbTempFiles "pg_stat_get_db_temp_files",
        PgStatGetDbTuplesDeleted "pg_stat_get_db_tuples_deleted",
        PgStatGetDbTuplesFetched "pg_stat_get_db_tuples_fetched",
        PgStatGetDbTuplesInserted "pg_stat_get_db_tuples_inserted",
        PgStatGetDbTuplesReturned "pg_stat_get_db_tuples_returned",
        PgStatGetDbTuplesUpdated "pg_stat_get_db_tuples_updated",
        PgStatGetDbXactCommit "pg_stat_get_db_xact_commit",
        PgStatGetDbXactRollback "pg_stat_get_db_xact_rollback",
        PgStatGetDeadTuples "pg_stat_get_dead_tuples",
        PgStatGetFunctionCalls "pg_stat_get_function_calls",
        PgStatGetFunctionSelfTime "pg_stat_get_function_self_time",
        PgStatGetFunctionTotalTime "pg_stat_get_function_total_time",
        PgStatGetInsSinceVacuum "pg_stat_get_ins_since_vacuum",
        PgStatGetLastAnalyzeTime "pg_stat_get_last_analyze_time",
        PgStatGetLastAutoanalyzeTime "pg_stat_get_last_autoanalyze_time",
        PgStatGetLastAutovacuumTime "pg_stat_get_last_autovacuum_time",
        PgStatGetLastVacuumTime "pg_stat_get_last_vacuum_time",
        PgStatGetLiveTuples "pg_stat_get_live_tuples",
        PgStatGetModSinceAnalyze "pg_stat_get_mod_since_analyze",
        PgStatGetNumscans "pg_stat_get_numscans",
        PgStatGetSnapshotTimestamp "pg_stat_get_snapshot_timestamp",
        PgStatGetTuplesDeleted "pg_stat_get_tuples_deleted",
        PgStatGetTuplesFetched "pg_stat_get_tuples_fetched",
        PgStatGetTuplesHotUpdated "pg_stat_get_tuples_hot_updated",
        PgStatGetTuplesInserted "pg_stat_get_tuples_inserted",
        PgStatGetTuplesReturned "pg_stat_get_tuples_returned",
        PgStatGetTuplesUpdated "pg_stat_get_tuples_updated",
        PgStatGetVacuumCount "pg_stat_get_vacuum_count",
        PgStatGetXactBlocksFetched "pg_stat_get_xact_blocks_fetched",
        PgStatGetXactBlocksHit "pg_stat_get_xact_blocks_hit",
        PgStatGetXactFunctionCalls "pg_stat_get_xact_function_calls",
        PgStatGetXactFunctionSelfTime "pg_stat_get_xact_function_self_time",
        PgStatGetXactFunctionTotalTime "pg_stat_get_xact_function_total_time",
        PgStatGetXactNumscans "pg_stat_get_xact_numscans",
        PgStatGetXactTuplesDeleted "pg_stat_get_xact_tuples_deleted",
        PgStatGetXactTuplesFetched "pg_stat_get_xact_tuples_fetched",
        PgStatGetXactTuplesHotUpdated "pg_stat_get_xact_tuples_hot_updated",
        PgStatGetXactTuplesInserted "pg_stat_get_xact_tuples_inserted",
        PgStatGetXactTuplesReturned "pg_stat_get_xact_tuples_returned",
        PgStatGetXactTuplesUpdated "pg_stat_get_xact_tuples_updated",
        PgStatHaveStats "pg_stat_have_stats",
        PgStatReset "pg_stat_reset",
        PgStatResetReplicationSlot "pg_stat_reset_replication_slot",
        PgStatResetShared "pg_stat_reset_shared",
        PgStatResetSingleFunctionCounters "pg_stat_reset_single_function_counters",
        PgStatResetSingleTableCounters "pg_stat_reset_single_table_counters",
        PgStatResetSlru "pg_stat_reset_slru",
        PgStatResetSubscriptionStats "pg_stat_reset_subscription_stats",
        PgStatStatementsReset "pg_stat_statements_reset",
        PgCreateRestorePoint "pg_create_restore_point",
        PgGetWalReplayPauseState "pg_get_wal_replay_pause_state",
        PgIsWalReplayPaused "pg_is_wal_replay_paused",
        PgLastWalReceiveLsn "pg_last_wal_receive_lsn",
        PgLastWalReplayLsn "pg_last_wal_replay_lsn",
        PgLastXactReplayTimestamp "pg_last_xact_replay_timestamp",
        PgPromote "pg_promote",
        PgSwitchWal "pg_switch_wal",
        PgWalReplayPause "pg_wal_replay_pause",
        PgWalReplayResume "pg_wal_replay_resume",
        PgWalfileName "pg_walfile_name",
    }
    /// Known, and not run by name: an error says so, unless evaluation handles it.
    Unsupported {
        ExtensionSupport "extension_support",
        PgCollationFor "pg_collation_for",
        PgColumnCompression "pg_column_compression",
        PgImportSystemCollations "pg_import_system_collations",
        PgIndexamProgressPhasename "pg_indexam_progress_phasename",
        PgLockStatus "pg_lock_status",
        PgLogBackendMemoryContexts "pg_log_backend_memory_contexts",
        PgNextoid "pg_nextoid",
        PgRotateLogfile "pg_rotate_logfile",
        PgRotateLogfileOld "pg_rotate_logfile_old",
        PgTypeof "pg_typeof",
        PgWalfileNameOffset "pg_walfile_name_offset",
        Setseed "setseed",
        Timeofday "timeofday",
    }
}

/// Those that return sets.
const SETS: &[SessionFunction] = &[
    SessionFunction::Aclexplode,
    SessionFunction::PgCompareStatements,
    SessionFunction::PgExtensionUpdatePaths,
    SessionFunction::PgGetCatalogForeignKeys,
    SessionFunction::PgGetMultixactMembers,
    SessionFunction::PgGetPublicationTables,
    SessionFunction::PgListeningChannels,
    SessionFunction::PgLockStatus,
    SessionFunction::PgLogicalSlotGetBinaryChanges,
    SessionFunction::PgLogicalSlotGetChanges,
    SessionFunction::PgLogicalSlotPeekBinaryChanges,
    SessionFunction::PgLogicalSlotPeekChanges,
    SessionFunction::PgLsArchiveStatusdir,
    SessionFunction::PgLsDir,
    SessionFunction::PgLsLogdir,
    SessionFunction::PgLsLogicalmapdir,
    SessionFunction::PgLsLogicalsnapdir,
    SessionFunction::PgLsTmpdir,
    SessionFunction::PgPartitionAncestors,
    SessionFunction::PgPartitionTree,
    SessionFunction::PgPreparedXact,
    SessionFunction::PgStacks,
    SessionFunction::PgStatGetBackendIdset,
    SessionFunction::PgStatWaitTrace,
    SessionFunction::PgTablespaceDatabases,
    SessionFunction::PgTopClients,
    SessionFunction::PgTopRelations,
    SessionFunction::PgTopStatements,
    SessionFunction::PgWaitHistory,
    SessionFunction::PgWhy,
    SessionFunction::TsStat,
];

/// The function of a row of the table that has no body of its own.
pub(super) fn of_row(name: &str, body: &str, returns_set: bool) -> Option<SessionFunction> {
    // Others of these names need no session.
    let by_body = || matches!(body, "xid_age" | "tsquery_rewrite_query").then_some(body);
    let function = SessionFunction::named(by_body().unwrap_or(name))?;
    (SETS.contains(&function) == returns_set).then_some(function)
}
